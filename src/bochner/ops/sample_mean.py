"""The mean of a function over Monte Carlo samples, one sample at a time, with its gradient."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

Function = Callable[[PyTree, PyTree], Float[Array, ""]]


def sample_mean(function: Function, shared: PyTree, samples: PyTree) -> Float[Array, ""]:
    """Compute the mean of `function(shared, sample)` over the leading axis of the leaves of `samples`.

    The samples follow each other, and the gradient of each is taken as soon as its value is known. Memory is that
    of one sample, however many there are, and what one sample needs fits in a processor's cache. Gradients are exact;
    derivatives in forward mode are not defined.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.ops import sample_mean
        >>> x = jnp.array([1.0, 2.0, 3.0])
        >>> float(jax.grad(lambda w: sample_mean(lambda w, x: w**2 * x, w, x))(3.0))
        12.0
    """
    return _mean((shared, samples), function)


@eqx.filter_custom_vjp
def _mean(arguments, function: Function):
    shared, samples = arguments

    def add(total, sample):
        return total + function(shared, sample), None

    total, _ = jax.lax.scan(add, _zero_like_value(function, shared, samples), samples)
    return total / _n_samples(samples)


@_mean.def_fwd
def _mean_and_gradient(perturbed, arguments, function: Function):
    (learned, learned_samples), (held, held_samples) = eqx.partition(arguments, perturbed)

    def add(carry, sample):
        learned_sample, held_sample = sample

        def value(learned_arguments):
            return function(*eqx.combine(learned_arguments, (held, held_sample)))

        one, (gradient, sample_gradient) = jax.value_and_grad(value)((learned, learned_sample))
        return jax.tree.map(jnp.add, carry, (one, gradient)), sample_gradient

    zero = _zero_like_value(function, *arguments)
    (total, gradient), sample_gradients = jax.lax.scan(
        add, (zero, jax.tree.map(jnp.zeros_like, learned)), (learned_samples, held_samples)
    )
    n_samples = _n_samples(arguments[1])
    return total / n_samples, (gradient, sample_gradients, 1 / n_samples)


@_mean.def_bwd
def _scaled_gradient(residuals, cotangent, perturbed, arguments, function: Function):
    gradient, sample_gradients, weight = residuals
    return jax.tree.map(lambda leaf: weight * cotangent * leaf, (gradient, sample_gradients))


def _n_samples(samples: PyTree) -> int:
    return jax.tree.leaves(samples)[0].shape[0]


def _zero_like_value(function: Function, shared: PyTree, samples: PyTree) -> Array:
    value = jax.eval_shape(function, shared, jax.tree.map(lambda leaf: leaf[0], samples))
    return jnp.zeros(value.shape, value.dtype)
