// @ts-check
// How a seat tells its state: by shape first, by colour second.

/** What a seat looks like. */
export const looks = /** @type {const} */ (["free", "accessible", "restricted", "held", "booked", "blocked", "yours", "asking"])
export const freeLook = 0, accessibleLook = 1, restrictedLook = 2, heldLook = 3, bookedLook = 4, blockedLook = 5, yoursLook = 6, askingLook = 7
export const categoryLooks = 3 // those that have the colour of their category

/**
 * Draws a look around the origin.
 *
 * @param {CanvasRenderingContext2D} pen @param {Record<string, string>} tokens  colours by role, and cat0 to cat5 @param {number} look @param {number} color @param {number} r radius in px
 */
export function drawLook(pen, tokens, look, color, r) {
  const {muted, accent, accentText, raised} = tokens, own = tokens["cat" + color], all = 2 * Math.PI
  const disc = (/** @type {number} */ radius, from = 0, to = all) => {
    pen.beginPath()
    pen.arc(0, 0, radius, from, to)
  }
  pen.lineWidth = Math.max(1.25, r / 5)
  pen.lineCap = pen.lineJoin = "round"
  switch (look) {
    case freeLook:
      pen.fillStyle = own
      disc(r)
      return pen.fill()
    case accessibleLook: // a disc with a chair on wheels
      pen.fillStyle = own
      disc(r)
      pen.fill()
      pen.strokeStyle = pen.fillStyle = raised
      pen.lineWidth = Math.max(1, r / 6)
      pen.beginPath()
      pen.arc(-r * 0.08, r * 0.2, r * 0.36, -0.4 * Math.PI, 0.9 * Math.PI)
      pen.moveTo(-r * 0.08, -r * 0.25)
      pen.lineTo(-r * 0.02, r * 0.12)
      pen.lineTo(r * 0.32, r * 0.12)
      pen.lineTo(r * 0.48, r * 0.5)
      pen.stroke()
      pen.beginPath()
      pen.arc(-r * 0.1, -r * 0.5, r * 0.14, 0, all)
      return pen.fill()
    case restrictedLook: // half a disc
      pen.fillStyle = pen.strokeStyle = own
      disc(r, Math.PI / 2, 1.5 * Math.PI)
      pen.fill()
      disc(r - pen.lineWidth / 2)
      return pen.stroke()
    case heldLook: // a ring
      pen.strokeStyle = muted
      disc(r * 0.8)
      return pen.stroke()
    case bookedLook: // a small dot
      pen.fillStyle = muted
      pen.globalAlpha = 0.6
      disc(r * 0.32)
      return pen.fill()
    case blockedLook: { // a small cross
      const a = r * 0.32
      pen.strokeStyle = muted
      pen.globalAlpha = 0.6
      pen.beginPath()
      pen.moveTo(-a, -a)
      pen.lineTo(a, a)
      pen.moveTo(a, -a)
      pen.lineTo(-a, a)
      return pen.stroke()
    }
    case askingLook:
      pen.strokeStyle = accent
      pen.setLineDash([r * 0.5, r * 0.4])
      disc(r * 0.95)
      return pen.stroke()
    case yoursLook:
      pen.strokeStyle = pen.fillStyle = accent
      disc(r)
      pen.fill()
      disc(r * 1.3)
      pen.stroke()
      pen.strokeStyle = accentText
      pen.lineWidth = Math.max(1.5, r / 3.5)
      pen.beginPath()
      pen.moveTo(-r * 0.45, r * 0.02)
      pen.lineTo(-r * 0.1, r * 0.38)
      pen.lineTo(r * 0.48, -r * 0.34)
      return pen.stroke()
  }
}
