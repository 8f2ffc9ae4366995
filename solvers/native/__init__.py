"""Native code: equations and integration loops compiled by LLVM, through llvmlite alone."""

from flexure.solvers.native.llvm.library import available as available
