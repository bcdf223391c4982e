// @ts-check
/**
 * Seats of an event on a partner's page (docs/embed.md), live, to be chosen:
 *
 *     <seatfence-map event="evt_…" key="…" lang="en" max="4">what is shown until the seats are there</seatfence-map>
 *
 * It asks as nobody in particular and holds nothing. What was chosen it tells the page, whose own server holds it.
 *
 * @module seatfence-map
 */
import {connect} from "./seatfence.js"

/** @typedef {{id: number, label: string, section: string, row: string, number: string, category: string, price: number}} Seat */
/** @typedef {{seat: Seat, button: HTMLButtonElement | null}} Place */

const server = new URL(import.meta.url).origin
const mostChosen = 20 // where the page says nothing; no hold has more by default
const stateNames = /** @type {const} */ (["free", "held", "booked", "blocked"])

const words = {
  en: {free: "free", held: "somebody is buying it", booked: "sold", blocked: "closed", chosen: "chosen", row: "Row", left: "free: ", lost: "No longer yours to choose: ", full: "No more seats at once than ", failed: "The seats cannot be shown at the moment."},
  de: {free: "frei", held: "wird gerade gekauft", booked: "verkauft", blocked: "gesperrt", chosen: "gewählt", row: "Reihe", left: "frei: ", lost: "Nicht mehr wählbar: ", full: "Höchstens so viele Plätze auf einmal: ", failed: "Die Plätze können gerade nicht gezeigt werden."},
}

// A constructed sheet needs no permission of the page's Content-Security-Policy.
const sheet = new CSSStyleSheet()
sheet.replaceSync(`
  :host { display: block; font: inherit; color: var(--seatfence-text, CanvasText); background: var(--seatfence-surface, Canvas); }
  :host([hidden]) { display: none; }
  details { border-block-end: 1px solid var(--seatfence-line, GrayText); }
  summary { padding: .75em .25em; cursor: pointer; font-weight: 600; }
  .row { display: flex; flex-wrap: wrap; align-items: center; gap: .25em; margin-block-end: .5em; }
  .row > span { min-inline-size: 4em; }
  button { font: inherit; min-inline-size: 2.75em; min-block-size: 2.75em; border: 2px solid currentColor; border-radius: 50%; background: none; color: inherit; cursor: pointer; }
  button[aria-pressed="true"] { background: var(--seatfence-accent, Highlight); color: var(--seatfence-accent-text, HighlightText); }
  button[aria-pressed="true"]::before { content: "✓"; }
  button[aria-disabled="true"] { cursor: not-allowed; color: var(--seatfence-muted, GrayText); border-style: dashed; }
  button[data-state="booked"], button[data-state="blocked"] { border-color: transparent; text-decoration: line-through; }
  :focus-visible { outline: 3px solid var(--seatfence-focus, Highlight); outline-offset: 2px; }
`)

/** What the server has refused, under the code of its problem. */
class Refusal extends Error {}

/** @param {Response} answer */
async function refusal(answer) {
  const problem = await answer.json().catch(() => ({}))
  return new Refusal(problem.code ?? "unavailable")
}

/** What the page is told of an error. Browsers do not tell a page that may not read an answer from one that got none. @param {unknown} err */
const codeOf = err => err instanceof Refusal ? err.message : "unreachable"

export class SeatfenceMap extends HTMLElement {
  static observedAttributes = ["event", "key", "lang"]

  #root = this.attachShadow({mode: "open"})
  #status = document.createElement("p")
  /** @type {AbortController | null} of everything that was begun for the attributes as they are */
  #run = null
  /** @type {import("./seatfence.js").MapView | null} */
  #view = null
  /** @type {Map<number, Place>} */
  #places = new Map()
  /** @type {Map<string, HTMLElement>} where a section tells how many are left */
  #left = new Map()
  /** @type {Set<number>} */
  #chosen = new Set()
  #price = (/** @type {number} */ minor) => String(minor)

  connectedCallback() {
    this.#root.adoptedStyleSheets = [sheet]
    this.#status.setAttribute("role", "status")
    this.#start()
  }

  disconnectedCallback() { this.#stop() }

  attributeChangedCallback() {
    if (this.isConnected && this.#run) this.#start()
  }

  /** The seats that are chosen, in the order in which they were. @returns {Seat[]} */
  get selected() { return [...this.#chosen].flatMap(id => this.#places.get(id)?.seat ?? []) }

  /** Chooses nothing any more. */
  clear() {
    const before = [...this.#chosen]
    this.#chosen.clear()
    before.forEach(id => this.#paint(id))
  }

  get #words() { return this.#language().startsWith("de") ? words.de : words.en }

  #language() { return this.lang || document.documentElement.lang || navigator.language }

  get #most() {
    const said = Number.parseInt(this.getAttribute("max") ?? "", 10)
    return said > 0 ? said : mostChosen
  }

  /** @param {string} name @param {object} detail */
  #tell(name, detail) { this.dispatchEvent(new CustomEvent("seatfence-" + name, {detail, bubbles: true, composed: true})) }

  #stop() {
    this.#run?.abort()
    this.#run = this.#view = null
  }

  async #start() {
    this.#stop()
    const run = this.#run = new AbortController(), event = this.getAttribute("event") ?? ""
    this.#chosen.clear()
    this.#places.clear()
    this.#root.replaceChildren(document.createElement("slot"), this.#status)
    try {
      await this.#read(event, run.signal)
    } catch (err) {
      if (run.signal.aborted) return
      this.#status.textContent = this.#words.failed
      this.#tell("error", {code: codeOf(err)})
      return
    }
    if (run.signal.aborted) return
    this.#follow(event, run.signal)
    this.#tell("ready", {seats: this.#places.size})
  }

  /** Asks for the seats and shows them. @param {string} event @param {AbortSignal} signal */
  async #read(event, signal) {
    const at = `${server}/v1/events/${encodeURIComponent(event)}`
    const [about, list] = await Promise.all([at, at + "/seats"].map(async address => {
      const answer = await fetch(address, {credentials: "omit", signal})
      if (!answer.ok) throw await refusal(answer)
      return answer.json()
    }))
    const format = new Intl.NumberFormat(this.#language(), {style: "currency", currency: about.currency})
    const minor = 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2)
    this.#price = amount => format.format(amount / minor)
    for (const {id, label, section, row, number, category, price} of list.seats) {
      this.#places.set(id, {seat: {id, label, section, row, number, category, price}, button: null})
    }
    this.#build(new Map(list.seats.map((/** @type {any} */ s) => [s.id, s.state])))
  }

  #state = (/** @type {number} */ id) => this.#view ? stateNames[this.#view.state(id)] : this.#first.get(id) ?? "blocked"
  /** @type {Map<number, typeof stateNames[number]>} before the stream has told anything */
  #first = new Map()

  /** @param {Map<number, any>} states */
  #build(states) {
    this.#first = states
    const sections = Map.groupBy(this.#places.values(), p => p.seat.section)
    const parts = [...sections].map(([name, places]) => {
      const part = document.createElement("details"), summary = document.createElement("summary"), left = document.createElement("span")
      summary.append(name + " · ", left)
      part.append(summary)
      this.#left.set(name, left)
      // Rows are made when they are looked at: a stadium has 50,000 seats.
      part.addEventListener("toggle", () => part.childElementCount > 1 || part.append(...this.#rows(places)))
      part.addEventListener("keydown", e => this.#move(part, e))
      return part
    })
    this.#root.replaceChildren(...parts, this.#status)
    this.#count()
  }

  /** @param {Place[]} places */
  #rows(places) {
    return [...Map.groupBy(places, p => p.seat.row)].map(([label, seats], i) => {
      const row = document.createElement("div"), name = document.createElement("span")
      row.className = "row"
      row.setAttribute("role", "group")
      name.textContent = `${this.#words.row} ${label}`
      row.setAttribute("aria-label", name.textContent)
      row.append(name, ...seats.map((place, j) => {
        const button = place.button = document.createElement("button")
        button.type = "button"
        button.textContent = place.seat.number
        button.dataset.seat = String(place.seat.id)
        button.tabIndex = i || j ? -1 : 0
        button.addEventListener("click", () => this.#pick(place.seat.id))
        this.#paint(place.seat.id)
        return button
      }))
      return row
    })
  }

  /** Arrows move between the seats of a section, which is one stop of Tab. @param {HTMLElement} part @param {KeyboardEvent} e */
  #move(part, e) {
    const rows = [...part.querySelectorAll(".row")].map(r => [...r.querySelectorAll("button")])
    const from = /** @type {HTMLButtonElement} */ (e.target), y = rows.findIndex(r => r.includes(from)), x = rows[y]?.indexOf(from)
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[e.key]
    if (y < 0 || x === undefined || !step) return
    e.preventDefault()
    const row = rows[y + step[0]] ?? rows[y]
    const to = row[Math.min(row.length - 1, Math.max(0, x + step[1]))]
    from.tabIndex = -1
    to.tabIndex = 0
    to.focus()
  }

  /** @param {number} id */
  #pick(id) {
    if (this.#chosen.has(id)) this.#chosen.delete(id)
    else if (this.#state(id) !== "free") return
    else if (this.#chosen.size >= this.#most) {
      this.#status.textContent = this.#words.full + this.#most
      return
    } else this.#chosen.add(id)
    this.#status.textContent = ""
    this.#paint(id)
    this.#tell("select", {seats: this.selected})
  }

  /** @param {number} id */
  #paint(id) {
    const place = this.#places.get(id), state = this.#state(id)
    if (!place?.button) return
    const {seat, button} = place, chosen = this.#chosen.has(id)
    button.dataset.state = state
    button.setAttribute("aria-pressed", String(chosen))
    button.setAttribute("aria-disabled", String(state !== "free" && !chosen))
    button.setAttribute("aria-label", [seat.label, seat.category, this.#price(seat.price), this.#words[chosen ? "chosen" : state]].join(", "))
  }

  #count() {
    /** @type {Map<string, {free: number, from: number}>} */
    const sums = new Map()
    for (const {seat} of this.#places.values()) {
      const sum = sums.get(seat.section) ?? {free: 0, from: Infinity}
      sums.set(seat.section, sum)
      if (this.#state(seat.id) !== "free") continue
      sum.free++
      sum.from = Math.min(sum.from, seat.price)
    }
    for (const [name, {free, from}] of sums) {
      const left = this.#left.get(name)
      if (left) left.textContent = this.#words.left + free + (free ? " · " + this.#price(from) + " +" : "")
    }
  }

  /** Keeps what is shown as it is. @param {string} event @param {AbortSignal} signal */
  #follow(event, signal) {
    const key = encodeURIComponent(this.getAttribute("key") ?? "")
    const stream = connect({
      url: server + "/v1/stream", storage: null,
      ticket: async () => {
        const answer = await fetch(`${server}/v1/stream/tickets?key=${key}`, {method: "POST", credentials: "omit", signal})
        if (answer.ok) return (await answer.json()).ticket
        const err = await refusal(answer)
        this.#tell("error", {code: err.message})
        throw err
      },
    })
    signal.addEventListener("abort", () => stream.bye())
    let epoch = ""
    const view = stream.viewMap(event, change => {
      if (signal.aborted) return
      if (epoch && epoch !== view.epoch) return void this.#start() // the event may be on another plan
      epoch = view.epoch
      this.#view = view
      const ids = change.all ? [...this.#places.keys()] : change.seats
      const lost = this.selected.filter(seat => this.#state(seat.id) !== "free")
      lost.forEach(seat => this.#chosen.delete(seat.id))
      ids.forEach(id => this.#paint(id))
      this.#count()
      if (lost.length) this.#status.textContent = this.#words.lost + lost.map(seat => seat.label).join(", ")
      this.#tell("change", {seats: ids.map(id => ({id, state: this.#state(id)})), lost})
    })
  }
}

if (!customElements.get("seatfence-map")) customElements.define("seatfence-map", SeatfenceMap)
