"""What one node can change in a sum of clipped gradients whose rows hold sums over neighbours, without any promise on degrees.

Row u of a multinomial logistic regression is w_u = [x_u; a_u; 1]: its own features, ‖x_u‖ ≤ 1, and

    a_u = P(R_u / c),   R_u = Σ_v W_uv x_v  with the weights of ``degree_caps``,   P the projection on the unit ball,

c public. With p_u = softmax(Θᵀw_u), g_u = w_u ⊗ (p_u − e_y), clipped to norm C. The part Θ_a of Θ that reads a_u is kept at a
Frobenius norm of at most B (public; the kernel projects it, whatever it is handed).

**Guarantee** (node-zero-out, every graph). A node that goes changes Σ_u clip(g_u) by at most

    Δ = C + min(L·Δ₁/c, 2C·(n − 1)),     L = √2 + (√3/2)·B,

Δ₁ = ``DegreeCap.sensitivity_l1()``; replacing a node is two removals, 2Δ. Also for any batch that was drawn without looking at
the data: its coins are the same in both worlds, and every sum of some of the rows obeys the same bound.

*Proof.* Its own row goes: C. Every other row keeps x_u and y_u, and a_u moves by t_u ≤ ‖ΔR_u‖/c, for P never lengthens a
difference. Write g' − g = (w' − w) ⊗ δ' + w ⊗ (δ' − δ) with δ = p − e_y. Here ‖w' − w‖ = t, ‖δ'‖ ≤ √2, ‖w‖ ≤ √3, and the
Jacobian of the softmax has norm at most ½, so ‖δ' − δ‖ ≤ ½·‖Θ_a‖·t: together L·t. Clipping is the projection on a ball, which
never lengthens a difference either. Σ_u t_u ≤ Δ₁/c. And no row moves by more than 2C. □

**What it is worth.** A hub can stand in every row, so Δ grows with n: at c = L·Δ₁/C, where neighbours and the own row cost
the same, 1/c is about 1/(L·s·n/C), and neighbours count for almost nothing. This is the price of a gradient that reads
private neighbours at every step; rows that are released once (``gap_node``) pay s·√n instead.

**Edge cases.** c, B or C that is zero, negative or not finite → ``PrivacyError``.
"""

import math

from fedgraph.privacy.degree_caps import DegreeCap
from fedgraph.privacy.sensitivity import require_positive


def lipschitz(bound: float) -> float:
    """L: how far a row's gradient moves at most when its neighbours' part moves by 1.

    >>> round(lipschitz(2.0), 4)
    3.1463
    """
    require_positive("bound", bound)
    return math.sqrt(2) + math.sqrt(3) / 2 * bound


def balanced_scale(cap: DegreeCap, clip: float, bound: float) -> float:
    """The c at which all other rows together cost as much as a node's own."""
    require_positive("clip", clip)
    return lipschitz(bound) * cap.sensitivity_l1() / clip


def sensitivity(cap: DegreeCap, clip: float, bound: float, scale: float, replaces: bool = False) -> float:
    """Δ of one sum, in data units."""
    require_positive("clip", clip)
    require_positive("scale", scale)
    others = min(lipschitz(bound) * cap.sensitivity_l1() / scale, 2 * clip * (cap.num_nodes - 1))
    return (2 if replaces else 1) * (clip + others)
