// @ts-check
/**
 * The drawing of an event's seats: a canvas that is zoomed and moved by mouse, touch and keys, and that says what was pointed at. It knows
 * where seats are and how they look; what they cost, who has them and what is said about them it is told.
 *
 *     const map = new SeatMap(host, {plan, words, colorOf: category => 0})
 *     map.setStates(seat => view.state(seat))
 *     map.addEventListener("pick", e => choose(e.detail.seat))
 *
 * @module seatmap
 */

import {around, boundsOf, hull, within} from "./geometry.js"
import {accessibleLook, askingLook, blockedLook, bookedLook, categoryLooks, drawLook, freeLook, heldLook, looks, restrictedLook, yoursLook} from "./looks.js"

/** @typedef {import("./geometry.js").Point} Point */
/** @typedef {{id: number, label: string, number: string, category: number, x: number, y: number, accessible?: boolean, companion?: boolean, restricted_view?: boolean, whole_table?: boolean}} PlanSeat */
/** @typedef {{layout: number, focus?: Point, categories: {id: number, name: string}[], sections: {name: string, rows: {label: string, seats: PlanSeat[]}[]}[], areas: {id: number, name: string, category: number, capacity: number, outline?: Point[]}[], decorations: {kind: string, label?: string, outline: Point[]}[]}} Plan  GET /v1/events/{event}/map */
/** @typedef {{zoomIn: string, zoomOut: string, whole: string, map: string, wheel: string}} Words  of the controls */
/** @typedef {{name: string, text: string, shape: Point[], middle: Point, area: number}} Region  a section (area 0), or an area */
/** @typedef {{seat: PlanSeat, section: string, row: string}} Described */

/** States as seatfence.js has them. */
const free = 0, held = 1, booked = 2

const seatShare = 0.8 // of the distance to the next one
const nearPitch = 7 // px from seat to seat from which on seats are drawn and not their sections
const stampPitch = 11 // px from which on they have shapes, and are not mere dots
const numberPitch = 26 // px from which on they have numbers
const largestPitch = 64 // px; no nearer
const step = 1.5 // of a zoom by button
const glide = 200 // ms of a movement that explains itself
const pulse = 450 // ms that a seat shows that it has just turned taken
const slack = 6 // px that a finger may move and still tap
const reach = 14 // px around a seat that still mean it
const panStep = 60 // px of an arrow key
const edge = 24 // px around the whole
const aside = 56 // px that the controls take of the width
const miniSize = 110 // px, the longer side
const miniEvery = 1000 // ms between pictures of it
const cellPitches = 4 // of a cell of the index
const palette = 6

const sheet = new CSSStyleSheet()
sheet.replaceSync(`
  .seatmap { position: relative; overflow: hidden; block-size: 100%; min-block-size: 16rem; background: var(--surface, Canvas); touch-action: none; user-select: none; -webkit-user-select: none; }
  .seatmap canvas { display: block; inline-size: 100%; block-size: 100%; }
  .seatmap > canvas:focus-visible { outline: 3px solid var(--focus, Highlight); outline-offset: -3px; }
  .seatmap .controls { position: absolute; inset-block-start: 12px; inset-inline-end: 12px; display: grid; gap: 8px; }
  .seatmap .controls button { inline-size: 44px; block-size: 44px; min-block-size: 0; padding: 0; font-size: 20px; line-height: 1; }
  .seatmap .mini { position: absolute; inset-block-end: 12px; inset-inline-start: 12px; border: 1px solid var(--line, GrayText); border-radius: 10px; background: var(--surface-raised, Canvas); cursor: pointer; }
  .seatmap .mini[hidden], .seatmap .hint[hidden] { display: none; }
  .seatmap .hint { position: absolute; inset-block-end: 12px; inset-inline: 12px; margin: 0 auto; inline-size: fit-content; padding: 6px 12px; border-radius: 10px; background: var(--surface-raised, Canvas); color: var(--text, CanvasText); border: 1px solid var(--line, GrayText); pointer-events: none; }
`)

export class SeatMap extends EventTarget {
  /** What was drawn last, for tests and benchmarks: how often each look, and how long it took in ms. */
  drawn = {frames: 0, seats: 0, regions: 0, ms: 0, looks: /** @type {Record<string, number>} */ ({})}

  #host
  #words
  #plan
  #colorOf
  /** @type {(seat: number) => number} */
  #state = () => booked
  /** @type {ReadonlySet<number>} */
  #chosen = new Set()
  /** @type {ReadonlySet<number>} */
  #asking = new Set()
  /** @type {((seat: PlanSeat) => boolean) | null} */
  #bright = null
  /** @type {number | null} */
  #pointed = null
  /** @type {(region: {name: string, area: number}) => string[]} */
  #caption = ({name}) => [name]

  // The seats by index.
  /** @type {PlanSeat[]} */
  #seats = []
  /** @type {{section: string, row: string}[]} */
  #rows = []
  #rowOf = new Uint32Array(0)
  /** @type {Point[]} where the names of rows are written */
  #rowHeads = []
  #look = new Uint8Array(0)
  #color = new Uint8Array(0)
  #dim = new Uint8Array(0)
  /** @type {Map<number, number>} */
  #index = new Map()
  /** @type {Map<number, number>} seats that have just turned taken, and when */
  #turned = new Map()
  /** @type {Map<number, Uint32Array>} seats by cell of the plan */
  #cells = new Map()
  #columns = 1
  #pitch = 1
  #bounds = {left: 0, top: 0, right: 1, bottom: 1}
  /** @type {Region[]} */
  #regions = []
  #apart = false // whether sections are drawn in place of their seats from far away

  // What is looked at.
  #scale = 1
  #x = 0
  #y = 0
  #width = 0
  #height = 0
  #ratio = 1
  #fitted = true // the whole is shown, and stays so when the window changes
  /** @type {{from: [number, number, number], to: [number, number, number], since: number} | null} */
  #moving = null
  #frame = 0
  /** @type {Map<number, {x: number, y: number}>} */
  #fingers = new Map()
  #moved = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #hinted

  #canvas = document.createElement("canvas")
  #mini = document.createElement("canvas")
  #hint = document.createElement("p")
  /** @type {HTMLCanvasElement | null} */
  #miniature = null
  #miniMade = 0
  #miniOld = false
  /** @type {CanvasRenderingContext2D} */
  #pen
  /** @type {Map<string, HTMLCanvasElement>} */
  #stamps = new Map()
  /** @type {Record<string, string>} */
  #tokens = {}
  #calm = matchMedia("(prefers-reduced-motion: reduce)")
  #dark = matchMedia("(prefers-color-scheme: dark)")
  #over = new AbortController()
  #resized = new ResizeObserver(() => this.#resize())

  /**
   * @param {HTMLElement} host  is filled
   * @param {{plan: Plan, words: Words, colorOf: (category: number) => number, caption?: (region: {name: string, area: number}) => string[]}} options  colorOf: from 0 to 5, of --cat-1 to --cat-6; caption: lines that are written on a section or an area
   */
  constructor(host, {plan, words, colorOf, caption}) {
    super()
    this.#host = host
    this.#words = words
    this.#plan = plan
    this.#colorOf = colorOf
    if (caption) this.#caption = caption
    const pen = this.#canvas.getContext("2d")
    if (!pen) throw new Error("no canvas")
    this.#pen = pen
    this.#read()
    this.#build()
    this.#listen()
    this.recolor()
    this.#resize()
  }

  /** Ends everything. */
  destroy() {
    this.#over.abort()
    this.#resized.disconnect()
    cancelAnimationFrame(this.#frame)
    this.#canvas.parentElement?.remove()
  }

  // What it is told.

  /** Where the states of seats come from. All are read. @param {(seat: number) => number} state */
  setStates(state) {
    this.#state = state
    this.changed(null)
  }

  /** Seats have another state than before; null: all may have. @param {number[] | null} seats */
  changed(seats) {
    const now = performance.now()
    for (const i of seats ? seats.map(id => this.#index.get(id)) : this.#seats.keys()) {
      if (i === undefined) continue
      const before = this.#look[i]
      this.#dress(i)
      const taken = this.#look[i] === heldLook || this.#look[i] === bookedLook
      if (seats && taken && before < categoryLooks && !this.#calm.matches) this.#turned.set(i, now)
    }
    this.#miniOld = true
    this.#soon()
  }

  /** The seats that are the visitor's. @param {ReadonlySet<number>} seats */
  setChosen(seats) { this.#marks(this.#chosen, this.#chosen = seats) }

  /** The seats that the server has been asked for. @param {ReadonlySet<number>} seats */
  setAsking(seats) { this.#marks(this.#asking, this.#asking = seats) }

  /** Seats that are not meant are dim; null: none is. @param {((seat: PlanSeat) => boolean) | null} bright */
  setFilter(bright) {
    this.#bright = bright
    this.changed(null)
  }

  /** The captions have changed. */
  recaption() {
    for (const r of this.#regions) r.text = this.#caption(r).join("\n")
    this.#soon()
  }

  /** The colours have changed. */
  recolor() {
    const style = getComputedStyle(this.#host)
    const token = (/** @type {string} */ name, /** @type {string} */ other) => style.getPropertyValue("--" + name).trim() || other
    const dark = this.#dark.matches
    this.#tokens = {
      surface: token("surface", dark ? "#15171a" : "#fbfaf8"), raised: token("surface-raised", dark ? "#1f2226" : "#ffffff"),
      text: token("text", dark ? "#f2f2f0" : "#1a1a1a"), muted: token("text-muted", dark ? "#a9a9a4" : "#5c5c58"), line: token("line", dark ? "#3a3d42" : "#d8d6d0"),
      accent: token("accent", dark ? "#5cc4cf" : "#0b5a66"), accentText: token("accent-text", dark ? "#0c1113" : "#ffffff"), focus: token("focus", dark ? "#8ab4ff" : "#1a5fd0"),
    }
    const colors = dark ? ["#6aa9ff", "#f0a04b", "#4fc99a", "#e58bc4", "#e6d24a", "#b79bff"] : ["#2f6fd0", "#b85c00", "#16805a", "#b0377f", "#7a6a00", "#6a45c4"]
    for (let i = 0; i < palette; i++) this.#tokens["cat" + i] = token("cat-" + (i + 1), colors[i])
    this.#stamps.clear()
    this.#miniature = null
    this.#soon()
  }

  /** A seat that is looked at elsewhere gets a ring, and is brought into view; null: none. @param {number | null} seat */
  point(seat) {
    this.#pointed = seat
    const i = seat === null ? undefined : this.#index.get(seat)
    if (i !== undefined) this.#reveal(this.#seats[i])
    this.#soon()
  }

  /** Brings into view: everything, a section, an area or a seat. @param {"all" | {section: string} | {area: number} | {seat: number}} what */
  zoomTo(what) {
    if (what === "all") return this.#go(this.#whole(), true)
    if ("seat" in what) {
      const i = this.#index.get(what.seat)
      if (i !== undefined) this.#go(this.#around(this.#seats[i], Math.max(this.#scale, numberPitch / this.#pitch)))
      return
    }
    const region = this.#regions.find(r => "area" in what ? r.area === what.area : !r.area && r.name === what.section)
    if (region) this.#go(this.#fit(boundsOf(region.shape)))
  }

  /** What is known of a seat. @param {number} seat @returns {Described | undefined} */
  describe(seat) {
    const i = this.#index.get(seat)
    return i === undefined ? undefined : {seat: this.#seats[i], ...this.#rows[this.#rowOf[i]]}
  }

  /** Where a seat is, in px of the host. @param {number} seat @returns {Point | undefined} */
  place(seat) {
    const i = this.#index.get(seat)
    return i === undefined ? undefined : this.#onScreen(this.#seats[i])
  }

  /** The seat at a place, in px of the host. @param {number} x @param {number} y @returns {number | undefined} */
  seatAt(x, y) {
    const i = this.#hit(x, y)
    return i === undefined ? undefined : this.#seats[i].id
  }

  /** Whether seats are drawn, and not their sections. */
  get near() { return !this.#apart || this.#pitch * this.#scale >= nearPitch }

  get scale() { return this.#scale }

  /** @param {ReadonlySet<number>} before @param {ReadonlySet<number>} after */
  #marks(before, after) {
    for (const seat of new Set([...before, ...after])) {
      const i = this.#index.get(seat)
      if (i !== undefined) this.#dress(i)
    }
    this.#soon()
  }

  // The plan.

  #read() {
    const {sections, areas, decorations} = this.#plan
    /** @type {number[]} */
    const rowOf = [], gaps = []
    for (const {name, rows} of sections) for (const row of rows) {
      this.#rows.push({section: name, row: row.label})
      for (const [i, seat] of row.seats.entries()) {
        this.#index.set(seat.id, this.#seats.length)
        this.#seats.push(seat)
        rowOf.push(this.#rows.length - 1)
        if (i) gaps.push(Math.hypot(seat.x - row.seats[i - 1].x, seat.y - row.seats[i - 1].y))
      }
    }
    const rows = sections.flatMap(s => s.rows)
    const n = this.#seats.length
    this.#rowOf = Uint32Array.from(rowOf)
    this.#look = new Uint8Array(n).fill(bookedLook)
    this.#color = Uint8Array.from(this.#seats, s => this.#colorOf(s.category) % palette)
    this.#dim = new Uint8Array(n)
    const known = gaps.filter(g => g > 0).sort((a, b) => a - b)
    this.#pitch = known[known.length >> 1] || 1
    const pitch = this.#pitch
    this.#rowHeads = rows.map(({seats: [first, next]}) => {
      const dx = next ? next.x - first.x : pitch, dy = next ? next.y - first.y : 0, far = Math.hypot(dx, dy) || 1
      return first ? {x: first.x - dx / far * pitch, y: first.y - dy / far * pitch} : {x: Infinity, y: Infinity}
    })
    const points = [...this.#seats, ...areas.flatMap(a => a.outline ?? []), ...decorations.flatMap(d => d.outline)]
    this.#bounds = points.length ? boundsOf(points) : {left: 0, top: 0, right: 1, bottom: 1}
    for (const side of /** @type {const} */ (["left", "top"])) this.#bounds[side] -= pitch
    for (const side of /** @type {const} */ (["right", "bottom"])) this.#bounds[side] += pitch
    this.#indexCells()
    for (const {name, rows} of sections) {
      const places = rows.flatMap(r => r.seats)
      if (places.length) this.#region(name, 0, hull(places.flatMap(p => around(p, 0.75 * pitch))))
    }
    for (const {id, name, outline} of areas) if (outline && outline.length > 2) this.#region(name, id, outline)
    this.#apart = sections.filter(s => s.rows.length).length > 1
    this.recaption()
  }

  /** @param {string} name @param {number} area @param {Point[]} shape */
  #region(name, area, shape) {
    const b = boundsOf(shape)
    this.#regions.push({name, area, text: "", shape, middle: {x: (b.left + b.right) / 2, y: (b.top + b.bottom) / 2}})
  }

  #cell(/** @type {number} */ x, /** @type {number} */ y) {
    const size = cellPitches * this.#pitch
    return Math.floor((y - this.#bounds.top) / size) * this.#columns + Math.floor((x - this.#bounds.left) / size)
  }

  #indexCells() {
    this.#columns = Math.max(1, Math.ceil((this.#bounds.right - this.#bounds.left) / (cellPitches * this.#pitch)) + 1)
    /** @type {Map<number, number[]>} */
    const cells = new Map()
    for (const [i, s] of this.#seats.entries()) {
      const cell = this.#cell(s.x, s.y), list = cells.get(cell)
      if (list) list.push(i)
      else cells.set(cell, [i])
    }
    this.#cells = new Map([...cells].map(([cell, list]) => [cell, Uint32Array.from(list)]))
  }

  /** Decides how a seat looks. @param {number} i */
  #dress(i) {
    const seat = this.#seats[i], state = this.#state(seat.id)
    let look = state === held ? heldLook : state === booked ? bookedLook : blockedLook
    if (state === free) look = seat.accessible ? accessibleLook : seat.restricted_view ? restrictedLook : freeLook
    if (this.#chosen.has(seat.id)) look = yoursLook
    else if (this.#asking.has(seat.id)) look = askingLook
    this.#look[i] = look
    this.#dim[i] = this.#bright && look < categoryLooks && !this.#bright(seat) ? 1 : 0
  }

  // The page.

  #build() {
    const root = this.#host.getRootNode()
    if (root instanceof Document || root instanceof ShadowRoot) {
      if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet)
    }
    const frame = document.createElement("div"), controls = document.createElement("div")
    frame.className = "seatmap"
    controls.className = "controls"
    for (const [text, name, act] of /** @type {[string, string, () => void][]} */ ([
      ["+", this.#words.zoomIn, () => this.#zoom(step)], ["−", this.#words.zoomOut, () => this.#zoom(1 / step)], ["⤢", this.#words.whole, () => this.zoomTo("all")],
    ])) {
      const button = document.createElement("button")
      button.type = "button"
      button.textContent = text
      button.setAttribute("aria-label", name)
      button.title = name
      button.addEventListener("click", act)
      controls.append(button)
    }
    this.#canvas.tabIndex = 0
    this.#canvas.setAttribute("role", "img")
    this.#canvas.setAttribute("aria-label", this.#words.map)
    this.#mini.className = "mini"
    this.#mini.hidden = true
    this.#mini.setAttribute("aria-hidden", "true")
    this.#hint.className = "hint"
    this.#hint.hidden = true
    this.#hint.textContent = this.#words.wheel
    frame.append(this.#canvas, this.#mini, this.#hint, controls)
    this.#host.append(frame)
  }

  #listen() {
    const on = (/** @type {EventTarget} */ target, /** @type {string} */ type, /** @type {(e: any) => void} */ f, passive = true) =>
      target.addEventListener(type, f, {signal: this.#over.signal, passive})
    on(this.#canvas, "pointerdown", e => this.#down(e))
    on(this.#canvas, "pointermove", e => this.#move(e))
    on(this.#canvas, "pointerup", e => this.#up(e))
    on(this.#canvas, "pointercancel", e => this.#fingers.delete(e.pointerId))
    on(this.#canvas, "pointerleave", e => e.pointerType === "mouse" && this.#hover(null, 0, 0))
    on(this.#canvas, "wheel", e => this.#wheel(e), false)
    on(this.#canvas, "keydown", e => this.#key(e), false)
    on(this.#mini, "pointerdown", e => this.#jump(e))
    on(this.#dark, "change", () => this.recolor())
    this.#resized.observe(this.#host)
  }

  #resize() {
    const {clientWidth: width, clientHeight: height} = this.#canvas.parentElement ?? this.#host
    if (!width || !height) return
    this.#ratio = devicePixelRatio || 1
    this.#canvas.width = Math.round(width * this.#ratio)
    this.#canvas.height = Math.round(height * this.#ratio)
    const middle = this.#inPlan(this.#width / 2, this.#height / 2)
    this.#width = width
    this.#height = height
    this.#stamps.clear()
    if (this.#fitted) this.#set(this.#whole())
    else this.#set([this.#scale, width / 2 - middle.x * this.#scale, height / 2 - middle.y * this.#scale])
    this.#paint()
  }

  // Where to look. A position is [scale in px, x, y of the plan's origin in px].

  /** @param {number} x @param {number} y @returns {Point} */
  #inPlan(x, y) { return {x: (x - this.#x) / this.#scale, y: (y - this.#y) / this.#scale} }

  /** @param {Point} p @returns {Point} */
  #onScreen(p) { return {x: p.x * this.#scale + this.#x, y: p.y * this.#scale + this.#y} }

  /** @returns {[number, number, number]} */
  #whole() { return this.#fit(this.#bounds) }

  /** @param {{left: number, top: number, right: number, bottom: number}} b @returns {[number, number, number]} */
  #fit(b) {
    const room = Math.min((this.#width - aside - 2 * edge) / (b.right - b.left || 1), (this.#height - 2 * edge) / (b.bottom - b.top || 1))
    return this.#around({x: (b.left + b.right) / 2, y: (b.top + b.bottom) / 2}, Math.max(1e-9, Math.min(room, largestPitch / this.#pitch)))
  }

  /** @param {Point} p @param {number} scale @returns {[number, number, number]} */
  #around(p, scale) { return [scale, (this.#width - aside) / 2 - p.x * scale, this.#height / 2 - p.y * scale] }

  /** Looks somewhere, within limits: the map cannot be lost. @param {[number, number, number]} position */
  #set([scale, x, y]) {
    const [least] = this.#whole()
    this.#scale = Math.min(Math.max(scale, least), Math.max(least, largestPitch / this.#pitch))
    const b = this.#bounds
    const held = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ room) => {
      const size = (to - from) * this.#scale
      if (size <= room - 2 * edge) return room / 2 - (from + to) / 2 * this.#scale
      return Math.min(edge - from * this.#scale, Math.max(room - edge - to * this.#scale, at))
    }
    this.#x = held(x, b.left, b.right, this.#width - aside)
    this.#y = held(y, b.top, b.bottom, this.#height)
    this.#fitted = this.#scale <= least * 1.001
    this.#soon()
  }

  /** @param {[number, number, number]} to */
  #go(to, whole = false) {
    if (this.#calm.matches) return this.#set(whole ? this.#whole() : to)
    this.#moving = {from: [this.#scale, this.#x, this.#y], to, since: performance.now()}
    this.#soon()
  }

  /** Zooms, with a place of the screen staying where it is. */
  #zoom(/** @type {number} */ by, x = this.#width / 2, y = this.#height / 2) {
    this.#moving = null
    const p = this.#inPlan(x, y), scale = this.#scale * by
    const [least] = this.#whole(), bounded = Math.min(Math.max(scale, least), Math.max(least, largestPitch / this.#pitch))
    this.#set([bounded, x - p.x * bounded, y - p.y * bounded])
  }

  /** @param {number} dx @param {number} dy */
  #pan(dx, dy) {
    this.#moving = null
    this.#set([this.#scale, this.#x + dx, this.#y + dy])
  }

  /** @param {Point} seat */
  #reveal(seat) {
    const {x, y} = this.#onScreen(seat)
    const inside = x > edge && y > edge && x < this.#width - aside - edge && y < this.#height - edge
    if (!inside || !this.near) this.#go(this.#around(seat, Math.max(this.#scale, stampPitch / this.#pitch)))
  }

  // What people do.

  /** @param {PointerEvent} e */
  #at(e) {
    const box = this.#canvas.getBoundingClientRect()
    return {x: e.clientX - box.left, y: e.clientY - box.top}
  }

  /** @param {PointerEvent} e */
  #down(e) {
    if (e.button) return
    this.#canvas.setPointerCapture(e.pointerId)
    this.#fingers.set(e.pointerId, this.#at(e))
    if (this.#fingers.size === 1) this.#moved = 0
    else this.#moved = Infinity // two fingers never tap
    this.#moving = null
  }

  /** @param {PointerEvent} e */
  #move(e) {
    const to = this.#at(e), from = this.#fingers.get(e.pointerId)
    if (!from) return void (e.pointerType === "mouse" && this.#hover(this.#hit(to.x, to.y) ?? null, to.x, to.y))
    const others = [...this.#fingers].filter(([id]) => id !== e.pointerId).map(([, p]) => p)
    this.#moved += Math.hypot(to.x - from.x, to.y - from.y)
    if (this.#moved <= slack) return // from stays, so that nothing of the way is lost
    this.#fingers.set(e.pointerId, to)
    if (others.length) {
      const [o] = others, before = Math.hypot(from.x - o.x, from.y - o.y), after = Math.hypot(to.x - o.x, to.y - o.y)
      this.#pan((to.x - from.x) / 2, (to.y - from.y) / 2)
      if (before > 1) this.#zoom(after / before, (to.x + o.x) / 2, (to.y + o.y) / 2)
    } else {
      this.#pan(to.x - from.x, to.y - from.y)
    }
  }

  /** @param {PointerEvent} e */
  #up(e) {
    if (!this.#fingers.delete(e.pointerId)) return
    if (this.#moved <= slack) this.#tap(this.#at(e))
  }

  /** @param {Point} at */
  #tap({x, y}) {
    const i = this.near ? this.#hit(x, y) : undefined
    if (i !== undefined) return void this.#tell("pick", {seat: this.#seats[i].id})
    const p = this.#inPlan(x, y), region = this.#regions.find(r => within(r.shape, p) && (r.area || !this.near))
    if (!region) return
    if (region.area) return void this.#tell("area", {area: region.area})
    this.zoomTo({section: region.name})
    this.#tell("section", {section: region.name})
  }

  /** @param {number | null} i @param {number} x @param {number} y */
  #hover(i, x, y) {
    const shown = i !== null && this.near ? this.#seats[i].id : null
    this.#canvas.style.cursor = shown === null ? "grab" : "pointer"
    this.#tell("hover", {seat: shown, x, y})
  }

  /** The wheel scrolls the page, unless it is meant for the map. @param {WheelEvent} e */
  #wheel(e) {
    if (!e.ctrlKey && !e.metaKey && document.activeElement !== this.#canvas && this.#canvas.getRootNode() instanceof Document) {
      this.#hint.hidden = false
      clearTimeout(this.#hinted)
      this.#hinted = setTimeout(() => (this.#hint.hidden = true), 1500)
      return
    }
    e.preventDefault()
    const {x, y} = this.#at(/** @type {any} */ (e)), lines = e.deltaMode ? 16 : 1
    this.#zoom(Math.exp(-Math.max(-100, Math.min(100, e.deltaY * lines)) * 0.004), x, y)
  }

  /** @param {KeyboardEvent} e */
  #key(e) {
    const act = {
      ArrowLeft: () => this.#pan(panStep, 0), ArrowRight: () => this.#pan(-panStep, 0), ArrowUp: () => this.#pan(0, panStep), ArrowDown: () => this.#pan(0, -panStep),
      "+": () => this.#zoom(step), "=": () => this.#zoom(step), "-": () => this.#zoom(1 / step), 0: () => this.zoomTo("all"),
    }[e.key]
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return
    e.preventDefault()
    act()
  }

  /** Looks where the small map was pressed. @param {PointerEvent} e */
  #jump(e) {
    const box = this.#mini.getBoundingClientRect(), b = this.#bounds
    const p = {x: b.left + (e.clientX - box.left) / box.width * (b.right - b.left), y: b.top + (e.clientY - box.top) / box.height * (b.bottom - b.top)}
    this.#go(this.#around(p, this.#scale))
  }

  /** @param {string} type @param {object} detail */
  #tell(type, detail) { this.dispatchEvent(new CustomEvent(type, {detail})) }

  /** The nearest seat to a place of the screen, if it is near enough. @param {number} x @param {number} y @returns {number | undefined} */
  #hit(x, y) {
    const p = this.#inPlan(x, y), far = Math.max(this.#pitch / 2, Math.min(reach / this.#scale, this.#pitch))
    let best, least = far * far
    for (const dy of [-far, far]) for (const dx of [-far, far]) {
      for (const i of this.#cells.get(this.#cell(p.x + dx, p.y + dy)) ?? []) {
        const s = this.#seats[i], d = (s.x - p.x) ** 2 + (s.y - p.y) ** 2
        if (d < least) [best, least] = [i, d]
      }
    }
    return best
  }

  // Painting.

  #soon() {
    if (!this.#frame && !this.#over.signal.aborted) this.#frame = requestAnimationFrame(() => this.#paint())
  }

  #paint() {
    cancelAnimationFrame(this.#frame)
    this.#frame = 0
    const began = performance.now()
    this.#glide(began)
    const pen = this.#pen, {surface} = this.#tokens
    pen.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0)
    pen.fillStyle = surface
    pen.fillRect(0, 0, this.#width, this.#height)
    this.drawn.looks = {}
    this.drawn.seats = this.drawn.regions = 0
    for (const d of this.#plan.decorations) this.#decoration(d)
    for (const r of this.#regions) if (r.area || !this.near) this.#paintRegion(r)
    if (this.near) this.#paintSeats(began)
    this.#paintMini()
    this.drawn.frames++
    this.drawn.ms = performance.now() - began
  }

  /** @param {number} now */
  #glide(now) {
    if (!this.#moving) return
    const {from, to, since} = this.#moving, t = Math.min(1, (now - since) / glide), eased = 1 - (1 - t) ** 3
    const at = /** @type {[number, number, number]} */ (from.map((f, i) => f + (to[i] - f) * eased))
    if (t < 1) {
      const moving = this.#moving
      this.#set(at)
      this.#moving = moving
    } else {
      this.#moving = null
      this.#set(to)
    }
  }

  /** @param {Point[]} shape */
  #trace(shape) {
    const pen = this.#pen
    pen.beginPath()
    for (const [i, p] of shape.entries()) {
      const {x, y} = this.#onScreen(p)
      if (i) pen.lineTo(x, y)
      else pen.moveTo(x, y)
    }
    pen.closePath()
  }

  /** @param {{kind: string, label?: string, outline: Point[]}} d */
  #decoration({label, outline}) {
    const pen = this.#pen, {line, muted, raised} = this.#tokens
    if (outline.length > 2) {
      this.#trace(outline)
      pen.fillStyle = raised
      pen.strokeStyle = line
      pen.lineWidth = 1
      pen.fill()
      pen.stroke()
    }
    if (!label || !outline.length) return
    const b = boundsOf(outline), {x, y} = this.#onScreen({x: (b.left + b.right) / 2, y: (b.top + b.bottom) / 2})
    this.#write([label], x, y, muted, outline.length > 2 ? (b.right - b.left) * this.#scale : Infinity)
  }

  /** Writes lines around a place, the first one bold, if they fit into a width; of the first its last word is enough. @param {string[]} lines @param {number} x @param {number} y @param {string} color @param {number} width */
  #write(lines, x, y, color, width) {
    const pen = this.#pen, height = 17
    pen.fillStyle = color
    pen.textAlign = "center"
    pen.textBaseline = "middle"
    for (const [i, line] of lines.entries()) {
      pen.font = `${i ? 400 : 600} 13px system-ui, sans-serif`
      const text = [line, i ? "" : line.split(" ").at(-1) ?? ""].find(t => t && pen.measureText(t).width <= width)
      if (text) pen.fillText(text, x, y + (i - (lines.length - 1) / 2) * height)
    }
  }

  /** @param {Region} r */
  #paintRegion(r) {
    const b = boundsOf(r.shape), corner = this.#onScreen({x: b.left, y: b.top}), size = {x: (b.right - b.left) * this.#scale, y: (b.bottom - b.top) * this.#scale}
    if (corner.x > this.#width || corner.y > this.#height || corner.x + size.x < 0 || corner.y + size.y < 0) return
    const pen = this.#pen, {raised, line, text} = this.#tokens, {x, y} = this.#onScreen(r.middle)
    this.#trace(r.shape)
    pen.fillStyle = raised
    pen.strokeStyle = line
    pen.lineWidth = 1.5
    pen.fill()
    pen.stroke()
    const lines = r.text.split("\n")
    this.#write(size.y < 17 * lines.length ? lines.slice(0, 1) : lines, x, y, text, size.x - 4)
    this.drawn.regions++
  }

  /** The seats on the screen. @returns {number[]} */
  #visible() {
    const from = this.#inPlan(-reach, -reach), to = this.#inPlan(this.#width + reach, this.#height + reach), size = cellPitches * this.#pitch
    const b = this.#bounds, list = []
    for (let y = Math.max(from.y, b.top); y <= Math.min(to.y, b.bottom) + size; y += size) {
      for (let x = Math.max(from.x, b.left); x <= Math.min(to.x, b.right) + size; x += size) {
        const cell = this.#cells.get(this.#cell(Math.min(x, b.right), Math.min(y, b.bottom)))
        if (cell) list.push(cell)
      }
    }
    return [...new Set(list)].flatMap(cell => [...cell])
  }

  /** @param {number} now */
  #paintSeats(now) {
    const px = this.#pitch * this.#scale, size = px * seatShare
    /** @type {number[][]} by look and colour, so that the pen changes its colour seldom */
    const batches = []
    for (const i of this.#visible()) {
      const look = this.#look[i], key = (look * palette + (look < categoryLooks ? this.#color[i] : 0)) * 2 + this.#dim[i]
      ;(batches[key] ??= []).push(i)
    }
    for (const [key, list] of batches.entries()) {
      if (!list) continue
      const look = Math.floor(key / 2 / palette), color = Math.floor(key / 2) % palette, dim = key % 2
      this.#pen.globalAlpha = dim ? 0.18 : 1
      if (px < stampPitch) this.#dots(list, look, color, size)
      else this.#stampAll(list, look, color, size)
      this.drawn.seats += list.length
      this.drawn.looks[looks[look]] = (this.drawn.looks[looks[look]] ?? 0) + list.length
    }
    this.#pen.globalAlpha = 1
    if (px >= stampPitch) this.#rowNames(px)
    this.#pulses(now, size)
    this.#ring(size)
  }

  /** Seats that are too small for a shape: size and colour tell. @param {number[]} list @param {number} look @param {number} color @param {number} size */
  #dots(list, look, color, size) {
    const pen = this.#pen, {muted, accent, text} = this.#tokens
    const share = look === yoursLook || look === askingLook ? 1.25 : look < categoryLooks ? 1 : look === heldLook ? 0.7 : 0.35
    const side = Math.max(1, size * share)
    pen.fillStyle = look === yoursLook ? accent : look === askingLook ? text : look < categoryLooks ? this.#tokens["cat" + color] : muted
    for (const i of list) {
      const s = this.#seats[i]
      pen.fillRect(s.x * this.#scale + this.#x - side / 2, s.y * this.#scale + this.#y - side / 2, side, side)
    }
  }

  /** @param {number[]} list @param {number} look @param {number} color @param {number} size */
  #stampAll(list, look, color, size) {
    const pen = this.#pen, stamp = this.#stamp(look, color, size), side = stamp.width / this.#ratio
    const numbers = this.#pitch * this.#scale >= numberPitch && (look === freeLook || look === heldLook)
    for (const i of list) {
      const s = this.#seats[i], x = s.x * this.#scale + this.#x, y = s.y * this.#scale + this.#y
      pen.drawImage(stamp, x - side / 2, y - side / 2, side, side)
      if (numbers) this.#number(s.number, x, y, size, look)
    }
  }

  /** @param {string} text @param {number} x @param {number} y @param {number} size @param {number} look */
  #number(text, x, y, size, look) {
    const pen = this.#pen
    pen.font = `600 ${Math.round(size * 0.42)}px system-ui, sans-serif`
    pen.textAlign = "center"
    pen.textBaseline = "middle"
    pen.fillStyle = look === freeLook ? this.#tokens.raised : this.#tokens.muted
    pen.fillText(text, x, y + 0.5)
  }

  /** The picture of a look, made once for a size. @param {number} look @param {number} color @param {number} size px @returns {HTMLCanvasElement} */
  #stamp(look, color, size) {
    const px = Math.max(4, Math.round(size * 2) / 2), key = `${look} ${color} ${px} ${this.#ratio}`
    const made = this.#stamps.get(key)
    if (made) return made
    if (this.#stamps.size > 200) this.#stamps.clear() // sizes of an earlier zoom
    const stamp = document.createElement("canvas"), side = Math.ceil(px * 1.4) + 2
    stamp.width = stamp.height = Math.round(side * this.#ratio)
    const pen = /** @type {CanvasRenderingContext2D} */ (stamp.getContext("2d"))
    pen.scale(this.#ratio, this.#ratio)
    pen.translate(side / 2, side / 2)
    drawLook(pen, this.#tokens, look, color, px / 2)
    this.#stamps.set(key, stamp)
    return stamp
  }

  /** The names of rows, before their first seats. @param {number} px */
  #rowNames(px) {
    const pen = this.#pen
    pen.font = `600 ${Math.round(Math.min(14, px * 0.5))}px system-ui, sans-serif`
    pen.textAlign = "center"
    pen.textBaseline = "middle"
    pen.fillStyle = this.#tokens.muted
    for (const [i, head] of this.#rowHeads.entries()) {
      const {x, y} = this.#onScreen(head)
      if (x > -px && y > -px && x < this.#width + px && y < this.#height + px) pen.fillText(this.#rows[i].row, x, y)
    }
  }

  /** Seats that have just turned taken. @param {number} now @param {number} size */
  #pulses(now, size) {
    const pen = this.#pen
    for (const [i, since] of this.#turned) {
      const t = (now - since) / pulse
      if (t >= 1) {
        this.#turned.delete(i)
        continue
      }
      const {x, y} = this.#onScreen(this.#seats[i])
      pen.strokeStyle = this.#tokens.muted
      pen.globalAlpha = 1 - t
      pen.lineWidth = 2
      pen.beginPath()
      pen.arc(x, y, size / 2 * (1 + t), 0, 2 * Math.PI)
      pen.stroke()
    }
    pen.globalAlpha = 1
    if (this.#turned.size) this.#soon()
  }

  /** @param {number} size */
  #ring(size) {
    const i = this.#pointed === null ? undefined : this.#index.get(this.#pointed)
    if (i === undefined) return
    const pen = this.#pen, {x, y} = this.#onScreen(this.#seats[i])
    pen.strokeStyle = this.#tokens.focus
    pen.lineWidth = 3
    pen.beginPath()
    pen.arc(x, y, Math.max(6, size * 0.75), 0, 2 * Math.PI)
    pen.stroke()
  }

  /** The whole in a corner, and which part of it is looked at. */
  #paintMini() {
    const [least] = this.#whole(), b = this.#bounds
    this.#mini.hidden = this.#scale < least * 1.3 || this.#width < 4 * miniSize / 1.5
    if (this.#mini.hidden) return
    const scale = miniSize / Math.max(b.right - b.left, b.bottom - b.top), width = (b.right - b.left) * scale, height = (b.bottom - b.top) * scale
    const now = performance.now(), due = this.#miniOld && now - this.#miniMade > miniEvery
    if (this.#miniature && this.#miniOld && !due) setTimeout(() => this.#soon(), miniEvery)
    if (due) this.#miniature = null
    const small = this.#miniature ??= this.#shrink(scale, width, height), pen = /** @type {CanvasRenderingContext2D} */ (this.#mini.getContext("2d"))
    if (this.#mini.width !== small.width || this.#mini.height !== small.height) {
      this.#mini.width = small.width
      this.#mini.height = small.height
      this.#mini.style.inlineSize = width + "px"
      this.#mini.style.blockSize = height + "px"
    }
    pen.setTransform(1, 0, 0, 1, 0, 0)
    pen.clearRect(0, 0, small.width, small.height)
    pen.drawImage(small, 0, 0)
    pen.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0)
    const from = this.#inPlan(0, 0), to = this.#inPlan(this.#width, this.#height)
    pen.strokeStyle = this.#tokens.accent
    pen.lineWidth = 2
    pen.strokeRect((from.x - b.left) * scale, (from.y - b.top) * scale, (to.x - from.x) * scale, (to.y - from.y) * scale)
  }

  /** @param {number} scale @param {number} width @param {number} height @returns {HTMLCanvasElement} */
  #shrink(scale, width, height) {
    const small = document.createElement("canvas"), b = this.#bounds
    this.#miniMade = performance.now()
    this.#miniOld = false
    small.width = Math.max(1, Math.round(width * this.#ratio))
    small.height = Math.max(1, Math.round(height * this.#ratio))
    const pen = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"))
    pen.scale(this.#ratio, this.#ratio)
    const side = Math.max(1, this.#pitch * scale * seatShare)
    for (const [i, s] of this.#seats.entries()) {
      pen.fillStyle = this.#look[i] < categoryLooks ? this.#tokens["cat" + this.#color[i]] : this.#tokens.line
      pen.fillRect((s.x - b.left) * scale - side / 2, (s.y - b.top) * scale - side / 2, side, side)
    }
    pen.strokeStyle = this.#tokens.muted
    for (const {outline} of [...this.#plan.areas, ...this.#plan.decorations]) {
      pen.beginPath()
      for (const p of outline ?? []) pen.lineTo((p.x - b.left) * scale, (p.y - b.top) * scale)
      pen.closePath()
      pen.stroke()
    }
    return small
  }
}
