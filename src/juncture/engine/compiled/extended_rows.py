"""The innermost loops of products of tables whose entries have an exponent each.

An entry is x * 2**e, x in one flat array and e in another one, at the same address. Multiplying x
by a power of two is adding to its own exponent bits; so a term costs a few integer instructions
more than an ordinary product, and the loops compile to vector code.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import FAST, U, bits_of, from_bits, inner

# The exponent of zero, with x = 1: far below that of any sum.
LOWEST = -(2**50)
# What lies this many binary places below the largest term adds nothing to it.
DEEPEST = -1000


@inner()
def lower(x, places):
    """Scale a number by 2**places, for at most zero places."""
    return from_bits(bits_of(x) + (max(places, DEEPEST) << 52))


@inner()
def merge(r, exponents, at, x, e):
    """Add a term to an entry."""
    before = exponents[at]
    top = max(before, e)
    r[at] = lower(r[at], before - top) + lower(x, e - top)
    exponents[at] = top


@inner()
def _merge_scaled(x, f, y, g, r, h, at, n1, p1, q1, r1, n0):
    """Compute r[i, :] += q[i] * p[i, :]; four rows at a time where they add to the same one."""
    i = 0
    if r1 == 0:
        e = U(at[2])
        while i + 4 <= n1:
            a, k = U(at[0] + i * p1), U(at[1] + i * q1)
            b, c, d = a + U(p1), a + U(2 * p1), a + U(3 * p1)
            second, third, fourth = k + U(q1), k + U(2 * q1), k + U(3 * q1)
            y_a, y_b, y_c, y_d = y[k], y[second], y[third], y[fourth]
            g_a, g_b, g_c, g_d = g[k], g[second], g[third], g[fourth]
            for j in range(U(n0)):
                f_a, f_b, f_c, f_d = f[a + j] + g_a, f[b + j] + g_b, f[c + j] + g_c, f[d + j] + g_d
                before = h[e + j]
                top = max(f_a, f_b, f_c, f_d, before)
                left = y_a * lower(x[a + j], f_a - top) + y_b * lower(x[b + j], f_b - top)
                right = y_c * lower(x[c + j], f_c - top) + y_d * lower(x[d + j], f_d - top)
                r[e + j] = lower(r[e + j], before - top) + (left + right)
                h[e + j] = top
            i += 4
    while i < n1:
        a, b, c = U(at[0] + i * p1), U(at[1] + i * q1), U(at[2] + i * r1)
        factor, exponent = y[b], g[b]
        for j in range(U(n0)):
            merge(r, h, c + j, x[a + j] * factor, f[a + j] + exponent)
        i += 1


@inner()
def _merge_products(x, f, y, g, r, h, at, n1, p1, q1, r1, n0):
    """Compute r[i, :] += p[i, :] * q[i, :]."""
    for i in range(n1):
        a, b, c = U(at[0] + i * p1), U(at[1] + i * q1), U(at[2] + i * r1)
        for j in range(U(n0)):
            merge(r, h, c + j, x[a + j] * y[b + j], f[a + j] + g[b + j])


@inner(fastmath=FAST)
def dot_row(x, f, a, y, g, b, n):
    """The inner product of two rows: a number and its exponent."""
    top = 2 * LOWEST
    for j in range(n):
        top = max(top, f[a + j] + g[b + j])
    total = 0.0
    for j in range(n):
        total += lower(x[a + j], f[a + j] + g[b + j] - top) * y[b + j]
    return total, top


@inner()
def _merge_dots(x, f, y, g, r, h, at, n1, p1, q1, r1, n0):
    """Compute r[i] += p[i, :] . q[i, :]."""
    for i in range(n1):
        total, top = dot_row(x, f, U(at[0] + i * p1), y, g, U(at[1] + i * q1), U(n0))
        merge(r, h, U(at[2] + i * r1), total, top)


@inner(fastmath=FAST)
def _merge_sums(x, f, y, g, r, h, at, n1, p1, q1, r1, n0):
    """Compute r[i] += q[i] * sum(p[i, :])."""
    for i in range(n1):
        a, b, top, total = U(at[0] + i * p1), U(at[1] + i * q1), LOWEST, 0.0
        for j in range(U(n0)):
            top = max(top, f[a + j])
        for j in range(U(n0)):
            total += lower(x[a + j], f[a + j] - top)
        merge(r, h, U(at[2] + i * r1), total * y[b], top + g[b])


@inner()
def _merge_any(x, f, y, g, r, h, at, n1, p1, q1, r1, n0, p0, q0, r0):
    """Run the two innermost loops of r += p * q for any strides."""
    for i in range(n1):
        a, b, c = U(at[0] + i * p1), U(at[1] + i * q1), U(at[2] + i * r1)
        for _ in range(n0):
            merge(r, h, c, x[a] * y[b], f[a] + g[b])
            a, b, c = a + U(p0), b + U(q0), c + U(r0)


@inner()
def merge_rows(x, f, y, g, r, h, at, n1, p1, q1, r1, n0, p0, q0, r0):
    """Run the two innermost loops of r += p * q; the fast cases have strides 0 or 1 in the last.

    Left operand, right operand and result are x, y and r with exponents f, g and h. Where one
    operand stands still in the last loop, it is the right one.
    """
    if p0 == 1 and q0 == 0 and r0 == 1:
        _merge_scaled(x, f, y, g, r, h, at, n1, p1, q1, r1, n0)
    elif p0 == 1 and q0 == 1 and r0 == 1:
        _merge_products(x, f, y, g, r, h, at, n1, p1, q1, r1, n0)
    elif p0 == 1 and q0 == 1 and r0 == 0:
        _merge_dots(x, f, y, g, r, h, at, n1, p1, q1, r1, n0)
    elif p0 == 1 and q0 == 0 and r0 == 0:
        _merge_sums(x, f, y, g, r, h, at, n1, p1, q1, r1, n0)
    else:
        _merge_any(x, f, y, g, r, h, at, n1, p1, q1, r1, n0, p0, q0, r0)


@inner()
def _lower_or_flush(x, places):
    """Scale a number by 2**places; what is too small for ordinary numbers becomes zero."""
    return lower(x, places) if places > DEEPEST else 0.0


@inner()
def finish_rows(x, f, y, g, z, h, at, n1, p1, q1, c1, n0, q0, c0, factor, exponent):
    """Run the two innermost loops of x = x * y * z * factor / 2**exponent, in ordinary numbers.

    The exponents are f, g and h. In the last loop, x moves by one.
    """
    for i in range(n1):
        a, b, c = U(at[0] + i * p1), U(at[1] + i * q1), U(at[2] + i * c1)
        if q0 == 0 and c0 == 1:
            scale, top = y[b] * factor, exponent - g[b]
            for j in range(U(n0)):
                places = f[a + j] + h[c + j] - top
                x[a + j] = _lower_or_flush(x[a + j], places) * (z[c + j] * scale)
        elif q0 == 1 and c0 == 0:
            scale, top = z[c] * factor, exponent - h[c]
            for j in range(U(n0)):
                places = f[a + j] + g[b + j] - top
                x[a + j] = _lower_or_flush(x[a + j], places) * (y[b + j] * scale)
        else:
            for j in range(U(n0)):
                k, m = b + j * U(q0), c + j * U(c0)
                places = f[a + j] + g[k] + h[m] - exponent
                x[a + j] = _lower_or_flush(x[a + j], places) * (y[k] * z[m] * factor)
