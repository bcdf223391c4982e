// @ts-check
// What the drawing of a house needs to know of shapes.

/** @typedef {{x: number, y: number}} Point */

/** The smallest upright rectangle around points. @param {Point[]} points */
export function boundsOf(points) {
  const b = {left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity}
  for (const {x, y} of points) {
    b.left = Math.min(b.left, x)
    b.right = Math.max(b.right, x)
    b.top = Math.min(b.top, y)
    b.bottom = Math.max(b.bottom, y)
  }
  return b
}

/** Eight points around one. @param {Point} p @param {number} r @returns {Point[]} */
export function around(p, r) {
  return Array.from({length: 8}, (_, i) => ({x: p.x + r * Math.cos(i * Math.PI / 4), y: p.y + r * Math.sin(i * Math.PI / 4)}))
}

/** The convex hull of points: Andrew's monotone chain. @param {Point[]} points @returns {Point[]} */
export function hull(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y)
  const turn = (/** @type {Point} */ o, /** @type {Point} */ a, /** @type {Point} */ b) => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x)
  const chain = (/** @type {Point[]} */ list) => {
    /** @type {Point[]} */
    const out = []
    for (const p of list) {
      while (out.length > 1 && turn(out[out.length - 2], out[out.length - 1], p) <= 0) out.pop()
      out.push(p)
    }
    out.pop()
    return out
  }
  return [...chain(sorted), ...chain(sorted.reverse())]
}

/** Whether a point is within a polygon. @param {Point[]} shape @param {Point} p */
export function within(shape, p) {
  let inside = false
  for (let i = 0, j = shape.length - 1; i < shape.length; j = i++) {
    const a = shape[i], b = shape[j]
    if (a.y > p.y !== b.y > p.y && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside
  }
  return inside
}
