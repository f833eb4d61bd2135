"""The certificate of what a kernel machine's engine has at hand, as the fitting loop asks for it."""

from pegasos.problems.kernel_certificate import certify


def judged(engine):
    bounds = certify(engine.problem, engine.point())
    engine.judged(bounds)
    return bounds
