"""The materials of `Material.common`, with the sources of their numbers."""

from __future__ import annotations

from typing import Any

from flexure.blocks.flexures.sections.materials import Material

_STRUCTURAL = (
    "E and ν of EN 1993-1-1, 3.2.6; density of EN 1991-1-1; yield the minimum of EN 10025-2 up to"
    " 16 mm"
)
_BERYLLIUM = (
    "NGK Insulators, properties of alloy 25; yield the minimum of strip, temper OT; expansion of"
    " Materion, from 20 to 200 °C"
)
_SILICON = (
    "M. A. Hopcroft, W. D. Nix, T. W. Kenny, What is the Young's modulus of silicon, J."
    " Microelectromech. Syst. 19 (2010) 229-238; in the plane of a (100) wafer, along <110>"
)
_ASM = "ASM Handbook 2, typical values"
_FATIGUE = "fatigue at 5e8 cycles of smooth rotating beams"
_CDA = "Copper Development Association, data of wrought alloys"
_SPRING = "E and G of EN 13906-1"
_CRC = "CRC Handbook of Chemistry and Physics; annealed, polycrystalline"
_TSAI = "S. W. Tsai, H. T. Hahn, Introduction to Composite Materials (1980); along the fibers"
_BRITTLE = "brittle, its strength is that of the surface"
_ROARK = "E of carbon steels by temperature in Roark's Formulas, within 0.5 %"
_AUSTENITIC = "E by temperature of austenitic steels in EN 10088-1, within 0.4 %"
_NIST = "cryogenic data of NIST, within 0.2 %"

# Name, E in GPa, Poisson's ratio, G in GPa, density in kg/m³, yield and fatigue strength in MPa,
# thermal expansion in 1e-6/K, source. One of the elastic constants may follow from the others.
_TABLE = (
    ("structural steel S235", 210, 0.3, None, 7850, 235, None, 12,
     _STRUCTURAL),
    ("structural steel S355", 210, 0.3, None, 7850, 355, None, 12,
     _STRUCTURAL),
    ("spring steel 51CrV4", 206, None, 78.5, 7850, 1200, None, 12,
     f"{_SPRING}; yield the minimum of EN 10089, quenched and tempered"),
    ("music wire EN 10270-1", 206, None, 81.5, 7850, None, None, 12,
     f"{_SPRING}; strength by diameter in EN 10270-1"),
    ("oil-tempered wire EN 10270-2", 206, None, 79.5, 7850, None, None, 12,
     f"{_SPRING}; strength by diameter in EN 10270-2"),
    ("stainless wire 1.4310", 180, None, 70, 7900, None, None, 16,
     f"{_SPRING}, as delivered; strength by diameter in EN 10270-3"),
    ("stainless wire 1.4568", 190, None, 73, 7800, None, None, None,
     f"{_SPRING}, as delivered; strength by diameter in EN 10270-3"),
    ("stainless steel 301", 193, None, 78, 7880, 965, None, None,
     "Elgiloy, data sheet of alloy 301, much like 1.4310; yield the minimum of full hard strip"),
    ("stainless steel 1.4301", 200, 0.3, None, 7900, 210, None, 16,
     "EN 10088-1; yield the minimum of EN 10088-2 for plate"),
    ("stainless steel 17-4PH H900", 196.5, 0.272, 77.2, 7800, 1170, None, 10.8,
     "Armco, data sheet of 17-4 PH; yield the minimum of ASTM A693"),
    ("Elgiloy", 189.6, None, 77.2, 8300, None, None, None,
     "Elgiloy, data sheet; strength by cold reduction and aging"),
    ("Invar 36", 141, 0.29, None, 8050, 240, None, 1.2,
     "Carpenter, data sheet of Invar 36, annealed; expansion from 25 to 100 °C"),
    ("Ni-Span-C 902", 180, None, 66, 8050, None, None, 7.6,
     "Alloy Wire, data sheet; E and G by treatment, 165 to 200 and 62 to 69"),
    ("Kovar", 138, 0.317, None, 8360, 345, None, 5.9,
     "Carpenter, data sheet of Kovar, annealed; expansion from 25 to 100 °C"),
    ("Inconel 718", 200, 0.29, None, 8190, 1034, None, 13,
     "Special Metals, data sheet of alloy 718; yield the minimum of AMS 5662, aged"),
    ("Inconel X-750", 214, 0.29, None, 8280, None, None, 12.6,
     "Special Metals, data sheet of alloy X-750; strength by temper"),
    ("aluminum 2024-T3", 73.1, 0.33, None, 2780, 345, 138, 23.2,
     f"{_ASM}; {_FATIGUE}"),
    ("aluminum 5052-H32", 70.3, 0.33, None, 2680, 193, 117, 23.8,
     f"{_ASM}; {_FATIGUE}"),
    ("aluminum 6061-T6", 68.9, 0.33, None, 2700, 276, 96.5, 23.6,
     f"{_ASM}; {_FATIGUE}"),
    ("aluminum 6082-T6", 70, 0.3, None, 2700, 260, None, 23,
     "E, ν and expansion of EN 1999-1-1; yield the minimum of EN 485-2 up to 6 mm"),
    ("aluminum 7075-T6", 71.7, 0.33, None, 2810, 503, 159, 23.6,
     f"{_ASM}; {_FATIGUE}; EN 485-2 guarantees less, by thickness"),
    ("magnesium AZ31B", 45, 0.35, None, 1770, None, None, 26,
     f"{_ASM}; strength by temper"),
    ("titanium grade 2", 105, 0.37, None, 4510, 275, None, 8.6,
     f"{_ASM}; yield the minimum of ASTM B265"),
    ("titanium Ti-6Al-4V", 114, 0.33, 44, 4430, 830, 510, 8.6,
     "ASM data sheet of annealed bar; fatigue at 1e7 cycles of smooth specimens"),
    ("beryllium copper C17200", 127, 0.3, 49, 8260, 960, None, 17.5,
     _BERYLLIUM),
    ("phosphor bronze C51000", 110, None, 41, 8860, None, None, 17.8,
     f"{_CDA}; strength by temper"),
    ("nickel silver C75200", 124, None, 47, 8730, None, None, 16.2,
     f"{_CDA}; strength by temper"),
    ("brass C26000", 110, None, 41, 8530, None, None, 20,
     f"{_CDA}; strength by temper"),
    ("copper C11000", 117, None, 44, 8910, None, None, 17,
     f"{_CDA}; strength by temper"),
    ("gold", 79, None, 27, 19300, None, None, 14.2,
     _CRC),
    ("molybdenum", 329, None, 126, 10280, None, None, 4.8,
     _CRC),
    ("tungsten", 411, None, 161, 19300, None, None, 4.5,
     _CRC),
    ("fused silica", 72.7, 0.16, 31.4, 2201, None, None, 0.52,
     f"Corning, data sheet of HPFS 7980; {_BRITTLE}; expansion from 5 to 35 °C"),
    ("ULE glass", 67.6, 0.17, 29, 2210, None, None, 0,
     f"Corning, data sheet of ULE 7972; {_BRITTLE}; expansion within 0.03 from 5 to 35 °C"),
    ("Zerodur", 90.3, 0.243, None, 2530, None, None, 0,
     f"Schott, data sheet of Zerodur; {_BRITTLE}; expansion by class, from 0 to 50 °C"),
    ("borosilicate glass 3.3", 64, 0.2, None, 2230, None, None, 3.25,
     f"Schott, data sheet of Borofloat 33; {_BRITTLE}"),
    ("alumina 99.5 %", 370, 0.22, None, 3900, None, None, None,
     f"CoorsTek, properties of AD-995; {_BRITTLE}"),
    ("silicon <110>", 169, 0.064, 50.9, 2330, None, None, 2.6,
     f"{_SILICON}; {_BRITTLE}"),
    ("polysilicon", 169, 0.22, None, 2330, None, None, 2.6,
     f"W. N. Sharpe and others, J. Microelectromech. Syst. 6 (1997) 193-199; {_BRITTLE}"),
    ("SU-8", 2, 0.22, None, 1190, None, None, 52,
     "MicroChem, data sheet of SU-8 2000, hard baked"),
    ("PEEK", 4, 0.4, None, 1300, 98, None, 45,
     "Victrex, data sheet of PEEK 450G; creeps"),
    ("POM", 3.1, 0.35, None, 1420, 71, None, 110,
     "DuPont, data sheet of Delrin 500P; creeps"),
    ("polycarbonate", 2.4, 0.37, None, 1200, 66, None, 65,
     "Covestro, data sheet of Makrolon 2405; creeps"),
    ("PMMA", 3.3, 0.37, None, 1190, None, None, 80,
     "Röhm, data sheet of Plexiglas 8N; brittle, creeps"),
    ("polyimide", 2.5, 0.34, None, 1420, 69, None, 20,
     "DuPont, data sheet of Kapton HN film; yield at a strain of 3 %"),
    ("carbon fiber in epoxy", 181, 0.28, 7.17, 1600, None, None, 0.02,
     f"{_TSAI}; T300/5208"),
    ("boron fiber in epoxy", 204, 0.23, 5.59, 2000, None, None, 6.1,
     f"{_TSAI}; B(4)/5505"),
    ("glass fiber in epoxy", 38.6, 0.26, 4.14, 1800, None, None, 8.6,
     f"{_TSAI}; Scotchply 1002"),
    ("aramid fiber in epoxy", 76, 0.34, 2.3, 1460, None, None, -4,
     f"{_TSAI}; Kevlar 49"),
)  # fmt: skip

# Change of E in 1e-6/K over E, between two temperatures in K, and its source.
_THERMOELASTIC: dict[str, tuple[float, float, float, str]] = {
    **dict.fromkeys(
        ("structural steel S235", "structural steel S355", "spring steel 51CrV4",
         "music wire EN 10270-1", "oil-tempered wire EN 10270-2"),
        (-310, 200, 477, _ROARK),
    ),
    **dict.fromkeys(
        ("stainless steel 1.4301", "stainless steel 301", "stainless wire 1.4310"),
        (-373, 293, 673, _AUSTENITIC),
    ),
    "stainless steel 17-4PH H900": (-411, 293, 573, "E by temperature in EN 10088-1, within 1 %"),
    "aluminum 6061-T6": (-490, 200, 300, _NIST),
    "Invar 36": (640, 200, 300, _NIST),
    "Ni-Span-C 902": (0, 228, 338, "if treated for it; else within 40"),
    "fused silica": (200, 273, 373, "S. Spinner, J. Am. Ceram. Soc. 45 (1962): 11 % up to 1100 °C"),
    "silicon <110>": (-64.6, 273, 373, "as Material.silicon"),
}  # fmt: skip
# Temperatures in K above which creep and stress relaxation matter.
_CREEP = {
    **dict.fromkeys(("SU-8", "PEEK", "POM", "polycarbonate", "PMMA", "polyimide"), 0.0),
    **dict.fromkeys((name for name, *_ in _TABLE if name.startswith("aluminum")), 353.15),
}


def _by_temperature(name: str, source: str) -> dict[str, Any]:
    """Return how a material depends on the temperature, with its sources."""
    given: dict[str, Any] = {"source": source, "creep_temperature": _CREEP.get(name)}
    if name in _THERMOELASTIC:
        coefficient, low, high, origin = _THERMOELASTIC[name]
        given["thermoelastic_coefficient"] = _times(coefficient, 1e-6)
        given["temperature_range"] = float(low), float(high)
        given["source"] = f"{source}; thermoelastic: {origin}"
    return given


def _times(number: float | None, unit: float) -> float | None:
    return None if number is None else float(f"{number * unit:.6g}")


#: The materials by name.
COMMON = {
    name: Material(
        float(f"{E * 1e9:.6g}"),
        poissons_ratio=nu,
        shear_modulus=_times(G, 1e9),
        density=float(density),
        yield_strength=_times(strength, 1e6),
        fatigue_limit=_times(fatigue, 1e6),
        thermal_expansion=_times(expansion, 1e-6),
        name=name,
        **_by_temperature(name, source),
    )
    for name, E, nu, G, density, strength, fatigue, expansion, source in _TABLE
}
