"""The probe: `import probe; probe.install()` at the top of a training script, and nothing else.

It tells a monitor (`gpuwatch attach PID`) where the steps of this process spend their time. It
never raises into the loop, never waits for anybody, and is a no-op with `GPUWATCH=0`.
"""

from probe.api import install, phase, step, uninstall, wrap

__all__ = ["install", "phase", "step", "uninstall", "wrap"]
