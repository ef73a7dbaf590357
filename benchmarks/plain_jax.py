"""The paper's training step as one would first write it in JAX: the yardstick of the speed benchmark."""

import jax
import jax.numpy as jnp
import optax

from benchmarks.configurations import Configuration


def _start_layer(key, d_in, n_rf, d_out):
    lengthscale = jnp.log(jnp.sqrt(d_in))
    return {
        "log_variance": jnp.zeros(()),
        "log_lengthscale": jnp.full((d_in,), lengthscale),
        "epsilon": jax.random.normal(key, (d_in, n_rf)),
        "omega_mean": jnp.zeros((d_in, n_rf)),
        "omega_log_var": jnp.full((d_in, n_rf), -2 * lengthscale),
        "w_mean": jnp.zeros((2 * n_rf, d_out)),
        "w_log_var": jnp.zeros((2 * n_rf, d_out)),
    }


def _kl(mean, log_var, prior_log_var):
    ratio = jnp.exp(log_var - prior_log_var)
    return 0.5 * jnp.sum(ratio - (log_var - prior_log_var) - 1 + mean**2 / jnp.exp(prior_log_var))


def make(configuration: Configuration, X, y, n_mc: int, n_steps: int):
    """Give a function that runs `n_steps` steps from a state, and the first state."""
    c = configuration
    n = X.shape[0]
    sizes = [c.d_in, *[c.width] * (c.n_layers - 1), c.d_out]
    keys = jax.random.split(jax.random.key(0), c.n_layers)
    layers = [
        _start_layer(key, d_in + (c.d_in if c.feed_inputs and i > 0 else 0), c.n_rf, d_out)
        for i, (key, d_in, d_out) in enumerate(zip(keys, sizes[:-1], sizes[1:], strict=True))
    ]
    epsilons = [layer.pop("epsilon") for layer in layers]
    parameters = {"layers": layers, "log_noise": jnp.asarray(-2.0)}
    optimizer = optax.adam(0.01)

    def log_likelihood(F, Y, log_noise):
        if c.classification:
            return jnp.take_along_axis(jax.nn.log_softmax(F), Y, axis=1)[:, 0]
        squared = (Y - F) ** 2 / jnp.exp(log_noise)
        return -0.5 * jnp.sum(squared + log_noise + jnp.log(2 * jnp.pi), axis=1)

    def objective(parameters, X_batch, Y_batch, key):
        def one_sample(key):
            F = X_batch
            for i, (layer, epsilon) in enumerate(zip(parameters["layers"], epsilons, strict=True)):
                if c.feed_inputs and i > 0:
                    F = jnp.concatenate([F, X_batch], axis=1)
                Omega = layer["omega_mean"] + jnp.exp(layer["omega_log_var"] / 2) * epsilon
                Z = F @ Omega
                scale = jnp.sqrt(jnp.exp(layer["log_variance"]) / c.n_rf)
                Phi = scale * jnp.concatenate([jnp.cos(Z), jnp.sin(Z)], axis=1)
                noise = jax.random.normal(jax.random.fold_in(key, i), layer["w_mean"].shape)
                F = Phi @ (layer["w_mean"] + jnp.exp(layer["w_log_var"] / 2) * noise)
            return log_likelihood(F, Y_batch, parameters["log_noise"])

        ell = n / c.batch * jnp.sum(jnp.mean(jax.vmap(one_sample)(jax.random.split(key, n_mc)), 0))
        kl = 0.0
        for layer in parameters["layers"]:
            kl += _kl(layer["w_mean"], layer["w_log_var"], 0.0)
            prior = -2 * layer["log_lengthscale"][:, None]
            kl += _kl(layer["omega_mean"], layer["omega_log_var"], prior)
        return -(ell - kl)

    def step(state, key):
        parameters, optimizer_state = state
        key_rows, key_noise = jax.random.split(key)
        rows = jax.random.randint(key_rows, (c.batch,), 0, n)
        loss, gradient = jax.value_and_grad(objective)(parameters, X[rows], y[rows], key_noise)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (optax.apply_updates(parameters, updates), optimizer_state), loss

    @jax.jit
    def run(state, key):
        return jax.lax.scan(step, state, jax.random.split(key, n_steps))

    return run, (parameters, optimizer.init(parameters))
