"""The two innermost loops of every product of tables.

Operands are stretches of flat arrays: an address, and a stride for each of the two loops, the
last two numbers of an address's family (p1, p0 for p). The loops run n1 times n0. Where the last
stride is 0 or 1, the loop over n0 compiles to vector code.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import FAST, U, dot, inner


@inner(fastmath=FAST)
def add_products(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0, p0, q0, r0):
    """Run the two innermost loops of r += p * q; the fast cases have strides 0 or 1 in the last."""
    if p0 == 1 and q0 == 0 and r0 == 1:
        add_scaled(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0)
    elif p0 == 0 and q0 == 1 and r0 == 1:
        add_scaled(q, q_at, p, p_at, r, r_at, n1, q1, p1, r1, n0)
    elif p0 == 1 and q0 == 1 and r0 == 0:
        add_dots(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0)
    elif p0 == 1 and q0 == 1 and r0 == 1:
        for i in range(n1):
            a, b, c = U(p_at + i * p1), U(q_at + i * q1), U(r_at + i * r1)
            for j in range(U(n0)):
                r[c + j] += p[a + j] * q[b + j]
    elif p0 == 1 and q0 == 0 and r0 == 0:
        add_sums(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0)
    elif p0 == 0 and q0 == 1 and r0 == 0:
        add_sums(q, q_at, p, p_at, r, r_at, n1, q1, p1, r1, n0)
    else:
        for i in range(n1):
            a, b, c = U(p_at + i * p1), U(q_at + i * q1), U(r_at + i * r1)
            for j in range(U(n0)):
                r[c + j * U(r0)] += p[a + j * U(p0)] * q[b + j * U(q0)]


@inner(fastmath=FAST)
def add_scaled(x, x_at, s, s_at, r, r_at, n1, x1, s1, r1, n0):
    """Compute r[i, :] += s[i] * x[i, :]; four rows at a time where they add to the same one."""
    i = 0
    if r1 == 0:
        e = U(r_at)
        while i + 4 <= n1:
            a = U(x_at + i * x1)
            b, c, d = a + U(x1), a + U(2 * x1), a + U(3 * x1)
            at = U(s_at + i * s1)
            s_a, s_b, s_c, s_d = s[at], s[at + U(s1)], s[at + U(2 * s1)], s[at + U(3 * s1)]
            for j in range(U(n0)):
                r[e + j] += (s_a * x[a + j] + s_b * x[b + j]) + (s_c * x[c + j] + s_d * x[d + j])
            i += 4
    while i < n1:
        a, e, factor = U(x_at + i * x1), U(r_at + i * r1), s[U(s_at + i * s1)]
        for j in range(U(n0)):
            r[e + j] += factor * x[a + j]
        i += 1


@inner(fastmath=FAST)
def add_dots(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0):
    """Compute r[i] += p[i, :] . q[i, :]; four at a time where one of the rows stays the same."""
    if p1 != 0 and q1 == 0:
        p, p_at, p1, q, q_at, q1 = q, q_at, q1, p, p_at, p1
    i = 0
    if p1 == 0:
        while i + 4 <= n1:
            a, e = U(q_at + i * q1), U(p_at)
            b, c, d = a + U(q1), a + U(2 * q1), a + U(3 * q1)
            s_a = s_b = s_c = s_d = 0.0
            for j in range(U(n0)):
                x = p[e + j]
                s_a += x * q[a + j]
                s_b += x * q[b + j]
                s_c += x * q[c + j]
                s_d += x * q[d + j]
            at = U(r_at + i * r1)
            r[at] += s_a
            r[at + U(r1)] += s_b
            r[at + U(2 * r1)] += s_c
            r[at + U(3 * r1)] += s_d
            i += 4
    while i < n1:
        a, b = U(p_at + i * p1), U(q_at + i * q1)
        total = 0.0
        for j in range(U(n0)):
            total += p[a + j] * q[b + j]
        r[U(r_at + i * r1)] += total
        i += 1


@inner(fastmath=FAST)
def add_sums(p, p_at, s, s_at, r, r_at, n1, p1, s1, r1, n0):
    """Compute r[i] += s[i] * sum(p[i, :])."""
    for i in range(n1):
        a = U(p_at + i * p1)
        total = 0.0
        for j in range(U(n0)):
            total += p[a + j]
        r[U(r_at + i * r1)] += total * s[U(s_at + i * s1)]


@inner(fastmath=FAST)
def absorb_rows(x, x_at, q, q_at, c, c_at, d, d_at, n1, x1, q1, c1, n0, q0, c0, scale, keep):
    """Run the two innermost loops of d += x * c (along q's axes), then x *= c * q * scale."""
    n = U(n0)
    for i in range(n1):
        a, b = U(x_at + i * x1), U(q_at + i * q1)
        e, f = U(c_at + i * c1), U(d_at + i * q1)
        if q0 == 0 and c0 == 1:
            factor = q[b] * scale
            if keep:  # by a loop that writes nothing: see `flat.quadratic`
                d[f] += dot(x, a, c, e, n)
            for j in range(n):
                x[a + j] = (x[a + j] * c[e + j]) * factor
        elif q0 == 1 and c0 == 0:
            top = c[e]
            factor = top * scale
            for j in range(n):
                y = x[a + j]
                d[f + j] += y * top
                x[a + j] = y * (q[b + j] * factor)
        elif q0 == 1 and c0 == 1:
            for j in range(n):
                y = x[a + j] * c[e + j]
                d[f + j] += y
                x[a + j] = y * (q[b + j] * scale)
        elif c0 != 0:  # a copy in another axis order: q is the number one
            for j in range(n):
                x[a + j] *= c[e + j * U(c0)] * (q[b] * scale)
        else:
            top, total = c[e], 0.0
            factor = top * q[b] * scale
            for j in range(n):
                y = x[a + j]
                total += y
                x[a + j] = y * factor
            if keep:
                d[f] += total * top
