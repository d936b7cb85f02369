from .builder import BenchmarkManifest as BenchmarkManifest
from .builder import build as build
from .builder import read_benchmark as read_benchmark
from .cells import BENCHMARK_SCHEMA as BENCHMARK_SCHEMA
from .tiers import TIERS as TIERS
