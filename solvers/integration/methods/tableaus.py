"""The coefficients of one-step methods as plain numbers, for every loop that takes their steps.

`RK23`, `RK45` and `DOP853` are the explicit Runge-Kutta methods of `scipy.integrate`, to the last
bit; `RODAS5P` is the Rosenbrock method of `flexure.solvers.integration.methods.rosenbrock`, and
`ESDIRK4` the diagonally implicit one of `flexure.solvers.integration.methods.esdirk`. Sources:

======================  ========================================================================
``RK23``                P. Bogacki, L. F. Shampine, "A 3(2) pair of Runge-Kutta formulas",
                        Appl. Math. Lett. 2(4), 321-325 (1989)
``RK45``                J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae",
                        J. Comput. Appl. Math. 6(1), 19-26 (1980); interpolant from
                        L. F. Shampine, "Some practical Runge-Kutta formulas",
                        Math. Comp. 46(173), 135-150 (1986)
``DOP853``              E. Hairer, S. P. Nørsett, G. Wanner, "Solving Ordinary Differential
                        Equations I", section II.10, and the Fortran program of that name
``RODAS5P``             G. Steinebach, "Construction of Rosenbrock-Wanner method Rodas5P and
                        numerical benchmarks within the Julia Differential Equations package",
                        BIT Numer. Math. 63, 27 (2023)
``ESDIRK4``             C. A. Kennedy, M. H. Carpenter, "Additive Runge-Kutta schemes for
                        convection-diffusion-reaction equations", Appl. Numer. Math. 44, 139-181
                        (2003), there the implicit part of ARK4(3)6L[2]SA; see
                        `DiagonallyImplicitTableau` for guesses and interpolant
======================  ========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

Vector = tuple[float, ...]
Matrix = tuple[Vector, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplicitTableau:
    """An embedded explicit Runge-Kutta method with s stages.

    The slope at the new state is the first one of the next step, and counts as slope number s
    here::

        k_i   = f(t + C_i h, x + h Σ_{j<i} A_ij k_j)          i = 0 ... s-1
        x_new = x + h Σ_j B_j k_j
        k_s   = f(t + h, x_new)
        error = h Σ_j E_j k_j
    """

    name: str  # as in `flexure.solvers.integration.methods.methods.METHOD_NAMES`
    # order, error_order: orders of the method and of the solution it is compared with for an
    # estimate of the error.
    order: int
    error_order: int
    A: Matrix  # row i has i entries
    # B, C: weights and times of the stages, s of each.
    B: Vector
    C: Vector
    E: Vector  # the s + 1 weights of the error estimate; of order 5 for `DOP853`
    # `DOP853` has a second estimate e₃ of order 3 beside e₅ = E k. The norm of its error is ``h
    # |e₅|² / √(|e₅|² + 0.01 |e₃|²)``.
    E3: Vector = ()
    # The interpolant ``x + h Σ_j k_j Σ_p P_jp θ^(p+1)`` at the fraction θ of the step. None for
    # `DOP853`.
    P: Matrix = ()
    # A_extra, C_extra: three more stages of `DOP853`, k_13 to k_15, needed for its interpolant
    # only. Row i of ``A_extra`` has 13 + i entries.
    A_extra: Matrix = ()
    C_extra: Vector = ()
    # The last four coefficients ``F_3 ... F_6 = h D k`` of its interpolant. The first three are
    # ``F_0 = x_new - x``, ``F_1 = h k_0 - F_0`` and ``F_2 = 2 F_0 - h (k_0 + k_12)``, and it is ``x
    # + θ (F_0 + (1-θ) (F_1 + θ (F_2 + (1-θ) (F_3 + θ (F_4 + (1-θ) (F_5 + θ F_6))))))``.
    D: Matrix = ()

    @property
    def last_difference(self) -> Vector:
        """``x_new`` minus the point of the last stage as a sum of slopes, divided by the step."""
        row = (*self.A[-1], 0.0)
        return tuple(b - a for b, a in zip(self.B, row, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class RosenbrockTableau:
    """A stiffly accurate embedded Rosenbrock method with s stages.

    With the Jacobian J and the time derivative of f at the beginning of a step::

        W     = I / (gamma h) - J
        y_i   = x + Σ_{j<i} A_ij k_j                           i = 0 ... s-1
        W k_i = f(t + alpha_i h, y_i) + Σ_{j<i} (C_ij / h) k_j + h gammas_i ∂f/∂t
        x_new = y_{s-1} + k_{s-1}
        error = k_{s-1}
    """

    name: str  # as in `flexure.solvers.integration.methods.methods.METHOD_NAMES`
    # order, error_order: orders of the method and of the solution ``y_{s-1}`` it is compared with.
    order: int
    error_order: int
    gamma: float  # the diagonal coefficient
    # A, C: row i has i entries.
    A: Matrix
    C: Matrix
    # alpha, gammas: times of the stages, and weights of the time derivative, s of each.
    alpha: Vector
    gammas: Vector
    # Three rows of s weights. With ``H_p = Σ_j H_pj k_j``, the interpolant at the fraction θ of the
    # step is ``x + θ (x_new - x + (1-θ) (H_0 + θ (H_1 + θ H_2)))``.
    H: Matrix

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagonallyImplicitTableau:
    """A stiffly accurate embedded Runge-Kutta method with an explicit first of s stages.

    All implicit stages have the same diagonal coefficient. With increments z = h f::

        z_0   = h f(t, x)
        y_i   = x + Σ_{j<i} A_ij z_j + gamma z_i,   z_i = h f(t + alpha_i h, y_i)    i = 1 ... s-1
        x_new = y_{s-1}
        error = Σ_j E_j z_j
    """

    name: str  # as in `flexure.solvers.integration.methods.methods.METHOD_NAMES`
    # order, error_order: orders of the method and of the solution it is compared with.
    order: int
    error_order: int
    gamma: float  # the diagonal coefficient
    A: Matrix  # row i has i entries, those left of the diagonal
    alpha: Vector  # times of the stages
    E: Vector  # weights of the error estimate
    # Where the equations of a stage are first evaluated, ``x + Σ_{j<i} G_ij z_j``: at what earlier
    # stages extrapolate to, since linear equations of stiff mechanisms are good close to where they
    # are made only. Stage 1 goes ahead with the slope, stage 2 lies on the parabola through x with
    # its slope and y_1, the others on the polynomial through the last two states before them and
    # one more, the last one through three.
    G: Matrix
    H: Matrix  # the interpolant as that of `RosenbrockTableau`, of order 4, with continuous slopes

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.alpha)


@dataclass(frozen=True)
class ImplicitTableau:
    """A fully implicit Runge-Kutta method, whose last stage is the new state."""

    name: str  # name of the method
    order: int  # order of the result
    A: Matrix  # weights of derivatives in the stages
    C: Vector  # times of the stages, in parts of the step


# fmt: off
RK23 = ExplicitTableau(
    name="RK23",
    order=3,
    error_order=2,
    A=((), (1 / 2,), (0.0, 3 / 4)),
    B=(2 / 9, 1 / 3, 4 / 9),
    C=(0.0, 1 / 2, 3 / 4),
    E=(5 / 72, -1 / 12, -1 / 9, 1 / 8),
    P=(
        (1.0, -4 / 3, 5 / 9),
        (0.0, 1.0, -2 / 3),
        (0.0, 4 / 3, -8 / 9),
        (0.0, -1.0, 1.0),
    ),
)

RK45 = ExplicitTableau(
    name="RK45",
    order=5,
    error_order=4,
    A=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    B=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    C=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
    E=(-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),
    P=(
        (
            1.0, -8048581381 / 2820520608, 8663915743 / 2820520608,
            -12715105075 / 11282082432,
        ),
        (0.0, 0.0, 0.0, 0.0),
        (
            0.0, 131558114200 / 32700410799, -68118460800 / 10900136933,
            87487479700 / 32700410799,
        ),
        (
            0.0, -1754552775 / 470086768, 14199869525 / 1410260304,
            -10690763975 / 1880347072,
        ),
        (
            0.0, 127303824393 / 49829197408, -318862633887 / 49829197408,
            701980252875 / 199316789632,
        ),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

DOP853 = ExplicitTableau(
    name="DOP853",
    order=8,
    error_order=7,
    A=(
        (),
        (0.05260015195876773,),
        (0.0197250569845379, 0.0591751709536137),
        (0.02958758547680685, 0.0, 0.08876275643042054),
        (0.2413651341592667, 0.0, -0.8845494793282861, 0.924834003261792),
        (1 / 27, 0.0, 0.0, 0.17082860872947386, 0.12546768756682242),
        (19 / 512, 0.0, 0.0, 0.17025221101954405, 0.06021653898045596, -9 / 512),
        (
            0.03709200011850479, 0.0, 0.0, 0.17038392571223998, 0.10726203044637328,
            -0.015319437748624402, 0.008273789163814023,
        ),
        (
            0.6241109587160757, 0.0, 0.0, -3.3608926294469414, -0.868219346841726,
            27.59209969944671, 20.154067550477894, -43.48988418106996,
        ),
        (
            0.47766253643826434, 0.0, 0.0, -2.4881146199716677, -0.590290826836843,
            21.230051448181193, 15.279233632882423, -33.28821096898486, -0.020331201708508627,
        ),
        (
            -0.9371424300859873, 0.0, 0.0, 5.186372428844064, 1.0914373489967295,
            -8.149787010746927, -18.52006565999696, 22.739487099350505, 2.4936055526796523,
            -3.0467644718982196,
        ),
        (
            2.273310147516538, 0.0, 0.0, -10.53449546673725, -2.0008720582248625, -17.9589318631188,
            27.94888452941996, -2.8589982771350235, -8.87285693353063, 12.360567175794303,
            0.6433927460157636,
        ),
    ),
    B=(
        0.054293734116568765, 0.0, 0.0, 0.0, 0.0, 4.450312892752409, 1.8915178993145003,
        -5.801203960010585, 0.3111643669578199, -0.1521609496625161, 0.20136540080403034,
        0.04471061572777259,
    ),
    C=(
        0.0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726,
        1 / 3, 1 / 4, 4 / 13, 127 / 195, 3 / 5, 6 / 7, 1.0,
    ),
    E=(
        0.01312004499419488, 0.0, 0.0, 0.0, 0.0, -1.2251564463762044, -0.4957589496572502,
        1.6643771824549864, -0.35032884874997366, 0.3341791187130175, 0.08192320648511571,
        -0.022355307863886294, 0.0,
    ),
    E3=(
        -0.18980075407240762, 0.0, 0.0, 0.0, 0.0, 4.450312892752409, 1.8915178993145003,
        -5.801203960010585, -0.4226823213237919, -0.1521609496625161, 0.20136540080403034,
        0.02265179219836082, 0.0,
    ),
    A_extra=(
        (
            0.056167502283047954, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25350021021662483, -0.2462390374708025,
            -0.12419142326381637, 0.15329179827876568, 0.00820105229563469, 0.007567897660545699,
            -0.008298,
        ),
        (
            0.03183464816350214, 0.0, 0.0, 0.0, 0.0, 0.028300909672366776, 0.053541988307438566,
            -0.05492374857139099, 0.0, 0.0, -0.00010834732869724932, 0.0003825710908356584,
            -0.00034046500868740456, 0.1413124436746325,
        ),
        (
            -0.42889630158379194, 0.0, 0.0, 0.0, 0.0, -4.697621415361164, 7.683421196062599,
            4.06898981839711, 0.3567271874552811, 0.0, 0.0, 0.0, -0.0013990241651590145,
            2.9475147891527724, -9.15095847217987,
        ),
    ),
    C_extra=(1 / 10, 1 / 5, 7 / 9),
    D=(
        (
            -8.428938276109013, 0.0, 0.0, 0.0, 0.0, 0.5667149535193777, -3.0689499459498917,
            2.38466765651207, 2.117034582445028, -0.871391583777973, 2.2404374302607883,
            0.6315787787694688, -0.08899033645133331, 18.148505520854727, -9.194632392478356,
            -4.436036387594894,
        ),
        (
            10.427508642579134, 0.0, 0.0, 0.0, 0.0, 242.28349177525817, 165.20045171727028,
            -374.5467547226902, -22.113666853125306, 7.733432668472264, -30.674084731089398,
            -9.332130526430229, 15.697238121770845, -31.139403219565178, -9.35292435884448,
            35.81684148639408,
        ),
        (
            19.985053242002433, 0.0, 0.0, 0.0, 0.0, -387.0373087493518, -189.17813819516758,
            527.8081592054236, -11.57390253995963, 6.8812326946963, -1.0006050966910838,
            0.7777137798053443, -2.778205752353508, -60.19669523126412, 84.32040550667716,
            11.99229113618279,
        ),
        (
            -25.69393346270375, 0.0, 0.0, 0.0, 0.0, -154.18974869023643, -231.5293791760455,
            357.6391179106141, 93.40532418362432, -37.45832313645163, 104.0996495089623,
            29.8402934266605, -43.53345659001114, 96.32455395918828, -39.17726167561544,
            -149.72683625798564,
        ),
    ),
)

_RODAS5P_LAST = (
    -7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256,
    0.030198172008377946,
)

RODAS5P = RosenbrockTableau(
    name="Rodas5P",
    order=5,
    error_order=4,
    gamma=0.21193756319429014,
    A=(
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        _RODAS5P_LAST,
        (*_RODAS5P_LAST, 1.0),
        (*_RODAS5P_LAST, 1.0, 1.0),
    ),
    C=(
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (
            24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125,
            -0.6610691825249471,
        ),
        (
            30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783,
            -19.097331116725623, -28.087943162872662,
        ),
        (
            37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047,
            -40.06618937091002, -54.66780262877968, -9.48861652309627,
        ),
    ),
    alpha=(
        0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664,
        1.0, 1.0, 1.0,
    ),
    gammas=(
        0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734,
        2.325825639765069, 0.0, 0.0, 0.0,
    ),
    H=(
        (
            25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204,
            0.524948541321073, 1.1241088310450404, 0.4272876194431874, -0.17202221070155493,
        ),
        (
            -9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796,
            20.176138334709044, 15.98066361424651, -6.789040303419874, -6.710236069923372,
        ),
        (
            11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643,
            -52.072871366152654, -59.78993625266729, -0.15582684282751913, 4.883087185713722,
        ),
    ),
)

ESDIRK4 = DiagonallyImplicitTableau(
    name="ESDIRK4",
    order=4,
    error_order=3,
    gamma=1 / 4,
    A=(
        (),
        (1 / 4,),
        (8611 / 62500, -1743 / 31250),
        (5012029 / 34652500, -654441 / 2922500, 174375 / 388108),
        (
            15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768,
            2285395 / 8070912,
        ),
        (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211),
    ),
    alpha=(0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0),
    E=(
        0.0032044943984591762, 0.0, -0.0024462511366794577, -0.02148007591958727,
        0.043946868068572426, -0.02322503541076487,
    ),
    G=(
        (),
        (0.5,),
        (0.221776, 0.11022400000000002),
        (0.3476481927710844, 0.6058285714285715, -0.3334767641996558),
        (-0.4894449128850734, -2.744964550066534, 2.7729221944330886, 1.3114872685185186),
        (
            0.5798435192664625, 1.0234023276256214, -0.6503384443082556,
            -0.7138369212773219, 0.7609295186934939,
        ),
    ),
    H=(
        (
            0.8420837048383287, 0.0, -0.18675894052400022, -0.6805652953093335,
            0.27524053099500667, -0.25,
        ),
        (
            -1.8726147970769587, 1.5869448769048473, 3.815254207551977,
            -3.8843893728859564, 0.0441367311765164, 0.31066835432957474,
        ),
        (
            1.1884473874003012, -1.5869448769048473, -3.4417363265039747,
            5.245519963504626, -0.5946177931665297, -0.8106683543295747,
        ),
    ),
)

_ROOT = 6.0**0.5
RADAU_IIA = ImplicitTableau(
    name="Radau IIA",
    order=5,
    A=(
        ((88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225),
        ((296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225),
        ((16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9),
    ),
    C=((4.0 - _ROOT) / 10.0, (4.0 + _ROOT) / 10.0, 1.0),
)
# fmt: on
