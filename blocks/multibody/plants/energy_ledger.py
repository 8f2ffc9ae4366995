"""Blocks that sum energies and powers of a plant, to check its energy balance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from flexure.diagrams import LeafSystem
from flexure.diagrams.checks.arguments import flag, items_of
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.arrays import Array


class EnergyTotals(LeafSystem):
    """Energies and powers of a plant, summed over gravity, force elements and joints.

    With the kinetic energy T, the stored energies V_i with the conservative powers P_i, and the
    non-conservative powers P_j::

        potential_energy = Σ V_i            conservative_power = Σ P_i
        mechanical_energy = T + Σ V_i       non_conservative_power = Σ P_j

    Inputs, of size 1: ``kinetic_energy``; for each store of energy (gravity and the force elements)
    ``<store>_energy`` and ``<store>_power``, its conservative power; for each drain (the force
    elements and the damping of joints) ``<drain>_loss``, its non-conservative power.

    Outputs: ``potential_energy``, ``mechanical_energy`` in J, ``conservative_power``,
    ``non_conservative_power`` in W.

    Parameters
    ----------
    name : str
        Name of the block.
    stores, drains : sequence of str
        Names of what stores energy and of what takes it away.

    Raises
    ------
    DeclarationError
        When a name is there twice.

    See Also
    --------
    EnergyLedger : Integrals of the powers, to check a simulation.

    Examples
    --------
    >>> totals = EnergyTotals("totals", ["gravity", "spring"], ["damper"])
    >>> context = totals.create_default_context()
    >>> for name, value in [("kinetic", 4.0), ("gravity", -6.0), ("spring", 0.5)]:
    ...     totals.input_port(f"{name}_energy").fix(context, value)
    >>> totals.output_port("mechanical_energy").eval(context)
    array([-1.5])
    """

    def __init__(self, name: str, stores: Sequence[str], drains: Sequence[str]) -> None:
        super().__init__(name)
        stores, drains = _texts(self, "stores", stores), _texts(self, "drains", drains)
        self.kinetic_energy = self.declare_vector_input("kinetic_energy", 1, unit="J")
        self._energies = _inputs(self, stores, "energy", "J")
        self._powers = _inputs(self, stores, "power", "W")
        self._losses = _inputs(self, drains, "loss", "W")
        for output, added, unit in [
            ("potential_energy", self._energies, "J"),
            ("mechanical_energy", [self.kinetic_energy, *self._energies], "J"),
            ("conservative_power", self._powers, "W"),
            ("non_conservative_power", self._losses, "W"),
        ]:
            total = partial(_total, added)
            self.declare_vector_output(output, 1, total, prerequisites=added, unit=unit)


class EnergyLedger(LeafSystem):
    """Integrates the powers of a plant, to check its energy balance.

    With the kinetic energy T, the stored energies V_i with the conservative powers P_i, and the
    works W_j of the non-conservative powers, two numbers stay constant in exact arithmetic::

        balance = T + Σ V_i - Σ W_j         no energy comes from nowhere
        store_balances = V_i + ∫ P_i dt     the force of each store is that of its energy

    How much they move in a simulation is the error of the integration. A plant builder adds and
    wires a ledger by ``add_energy_ledger()``.

    Inputs, of size 1: ``kinetic_energy``; for each store ``<store>_energy`` and ``<store>_power``,
    its conservative power; for each source of work ``<source>_work_rate``, its non-conservative
    power. Outputs: ``balance``, ``store_balances`` (one for each store) and ``works`` (one for each
    source), in J.

    An element that takes energy away at single instants, such as a stop in impacts, is a sink: its
    input ``<sink>_dissipated`` is the energy dissipated so far. The works of sinks follow those of
    sources.

    A simulation that projects positions and velocities to where constraints are met changes the
    energy, by errors of the integration or, where a motion is prescribed that jumps or contradicts
    itself, by a blow. That is the last work, ``projections``.

    Parameters
    ----------
    name : str
        Name of the block.
    stores : sequence of str
        Names of what stores energy: gravity and force elements.
    sources : sequence of str
        Names of what does work beside that: force elements, the damping of joints, and the inputs.
    sinks : sequence of str
        Names of what takes energy away at instants.
    projections : bool
        Whether there are constraints, to which states are projected.

    Raises
    ------
    DeclarationError
        When a name is there twice.

    See Also
    --------
    EnergyTotals : The energies and powers at one instant.

    Notes
    -----
    Energies are known up to a constant, so only changes of the balances mean anything.

    Examples
    --------
    What the brake of a lift takes while it sinks, and how much of all energy is lost:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("lift", gravity=(0.0, 0.0, -10.0))
    >>> cabin = builder.add_body("cabin", fx.SpatialInertia.point_mass(2.0))
    >>> rail = fx.PrismaticJoint("rail", builder.world, cabin, (0.0, 0.0, 1.0), damping=4.0)
    >>> _ = builder.add_joint(rail)
    >>> builder.add_energy_ledger()
    >>> result = fx.simulate(builder.build(), 1.0, rtol=1e-8)
    >>> result["ledger.works"][-1].round(3)
    array([-38.076,   0.   ])
    >>> np.ptp(result["ledger.balance"]) < 1e-5
    np.True_
    """

    def __init__(
        self,
        name: str,
        stores: Sequence[str],
        sources: Sequence[str],
        sinks: Sequence[str] = (),
        *,
        projections: bool = False,
    ) -> None:
        super().__init__(name)
        self.stores = stores = _texts(self, "stores", stores)
        self.sources = sources = _texts(self, "sources", sources)
        self.sinks = sinks = _texts(self, "sinks", sinks)
        attempt = f"Cannot make the {type(self).__name__} '{name}'"
        flag(projections, "projections", attempt, error=DeclarationError)
        self.kinetic_energy = self.declare_vector_input("kinetic_energy", 1, unit="J")
        self._energies = _inputs(self, stores, "energy", "J")
        self._powers = _inputs(self, stores, "power", "W")
        self._work_rates = _inputs(self, sources, "work_rate", "W")
        self._dissipated = _inputs(self, sinks, "dissipated", "J")
        last = ["projections"] if projections else []
        names = [*(f"{store}_conservative" for store in stores), *sources, *last]
        self.works_state = self.declare_continuous_state(
            z=len(names), element_names=names, doc="works done so far"
        )
        if projections:
            self.declare_tally(self._calc_energy)
        x = self.works_state
        show = partial(self.declare_vector_output, unit="J")
        reads = [x, self.kinetic_energy, *self._energies, *self._dissipated]
        self.balance = show("balance", 1, self._calc_balance, prerequisites=reads)
        calc, reads = self._calc_store_balances, [x, *self._energies]
        self.store_balances = show(
            "store_balances", len(stores), calc, prerequisites=reads, element_names=stores
        )
        names, reads = [*sources, *sinks, *last], [x, *self._dissipated]
        self.works = show(
            "works", len(names), self._calc_works, prerequisites=reads, element_names=names
        )

    def calc_time_derivatives(self, context: Any) -> list[Array]:
        """Return the powers."""
        powers = [port(context) for port in (*self._powers, *self._work_rates)]
        return powers if self.tally is None else [*powers, np.zeros(1)]

    def _calc_works(self, context: Any) -> Array:
        works = self.works_state(context)[len(self.stores) :]
        if not self.sinks:
            return works
        count, taken = len(self.sources), [-port(context) for port in self._dissipated]
        return np.concatenate([works[:count], *taken, works[count:]])

    def _calc_store_balances(self, context: Any) -> list[Array]:
        done = self.works_state(context)
        return [port(context)[0] + done[k] for k, port in enumerate(self._energies)]

    def _calc_balance(self, context: Any) -> Array:
        return self._calc_energy(context) - np.sum(self._calc_works(context))

    def _calc_energy(self, context: Any) -> Array:
        return self.kinetic_energy(context) + _total(self._energies, context)


def _texts(block: LeafSystem, argument: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that an argument lists."""
    attempt = f"Cannot make the {type(block).__name__} '{block.name}'"
    return items_of(names, f"a list of names for {argument}", attempt, error=DeclarationError)


def _inputs(block: LeafSystem, names: Sequence[str], quantity: str, unit: str) -> list[InputPort]:
    """Declare one input of a quantity for each name."""
    return [block.declare_vector_input(f"{name}_{quantity}", 1, unit=unit) for name in names]


def _total(ports: Sequence[InputPort], context: Any) -> Array:
    """Return the sum of what is at several ports."""
    return sum((port(context) for port in ports), np.zeros(1))
