"""The errors of Flexure: every exception that it raises on purpose."""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.diagrams.checks.errors import (
        AlgebraicLoopError as AlgebraicLoopError,
        ContextError as ContextError,
        ContextFileError as ContextFileError,
        DeclarationError as DeclarationError,
        EvaluationError as EvaluationError,
        ExecutorError as ExecutorError,
        FlexureError as FlexureError,
        MissingExtraError as MissingExtraError,
        NativeCodeError as NativeCodeError,
        NonFiniteError as NonFiniteError,
        NoProgressError as NoProgressError,
        RecordFileError as RecordFileError,
        SimulationError as SimulationError,
        StepSizeError as StepSizeError,
        TraceError as TraceError,
        UnknownNameError as UnknownNameError,
        ValueRefusedError as ValueRefusedError,
        WiringError as WiringError,
        ZenoError as ZenoError,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
