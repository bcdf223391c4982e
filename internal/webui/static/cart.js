// @ts-check
/**
 * A buyer's choice in one event: seats that the server holds, and nothing that it has not said. It knows the API and no page.
 *
 *     const cart = new Cart({event: "evt_…", session: () => stream.session})
 *     cart.addEventListener("change", () => show(cart.hold, cart.asking))
 *     cart.addEventListener("lost", e => offer(e.detail))
 *     cart.pick(54)
 *
 * What it is asked for it does in turn. An answer that got lost is asked for again, under the same key, until it is known.
 *
 * @module cart
 */

/** @typedef {{id: number, label: string, section: string, row: string, number: string, type: string, price: number, fence: number, owned: boolean}} HeldSeat */
/** @typedef {{id: string, event: string, status: "open" | "booked" | "released" | "expired", seats: HeldSeat[], total: number, currency: string, timezone: string, expires_at: string, ends_at: string, server_time: string, extensions_left: number, booking?: string, together?: boolean, last_resort?: boolean}} Hold  as GET /v1/holds/{hold} */
/** @typedef {{id: number, label?: string, reason: string, held_until?: string}} LostSeat */
/** @typedef {{id: number, label: string, section: string, row: string, number: string, price: number}} Offer  a free seat */
/** @typedef {{quantity?: number, types?: {type: string, quantity: number}[], category?: string, section?: string, accessible?: number, together?: boolean}} Wish  for the best seats */
/** @typedef {{code: string, detail: string, seats?: LostSeat[], alternatives?: Offer[], retryAfter: number}} Problem */

const triesAtOnce = 3 // until the line counts as down
const again = 1000 // ms before a call that got no answer is made again; twice as long each time
const longestAgain = 8000
const patience = 15_000 // ms for an answer
const overAfter = 500 // ms after its end a hold is asked after
const warnings = [300, 120, 60] // seconds before the end
const busy = ["seat_busy", "key_in_progress", "busy", "unavailable", "overloaded", "rate_limited"] // come again later

/** What the server has refused. `code` is the server's; see Problem in openapi.yaml. */
export class Refused extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail)
    this.name = "Refused"
    this.problem = problem
  }
}

/**
 * Tells of itself by events: "change", whatever is another than before; "lost" {seats, alternatives, code}, seats that somebody else has or that
 * were refused; "warn" {seconds}, the time is nearly over; "over" {seats}, the hold has ended and these were in it; "line" {up}, whether the
 * server answers.
 */
export class Cart extends EventTarget {
  /** @type {Hold | null} the open hold; null if there is none */
  hold = null
  /** @type {ReadonlySet<number>} seats that the server was asked for and has not answered about */
  asking = new Set()
  /** @type {ReadonlySet<number>} seats that the server was asked to take back */
  dropping = new Set()
  /** Whether the server answers. */
  up = true

  #event
  #session
  #offset = 0 // of the server's clock, ms
  #queue = Promise.resolve()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #clock
  #told = new Set()
  #over = false
  #tabs

  /** @param {{event: string, session: () => string | null}} options  session: as seatfence.js has it: the hold lives while its page does */
  constructor({event, session}) {
    super()
    this.#event = event
    this.#session = session
    this.#tabs = new BroadcastChannel("seatfence cart " + event)
    this.#tabs.onmessage = e => this.#hear(e.data)
  }

  /** Ends it; the hold stays as it is. */
  close() {
    this.#over = true
    clearTimeout(this.#clock)
    this.#tabs.close()
  }

  /** The seats of the hold by id. @returns {Map<number, HeldSeat>} */
  get seats() { return new Map(this.hold?.seats.map(s => [s.id, s])) }

  /** How long the hold still lives, in ms of the server's clock. */
  get left() { return this.hold ? Math.max(0, Date.parse(this.hold.expires_at) - this.now()) : 0 }

  /** The server's time, ms. */
  now() { return Date.now() + this.#offset }

  // What it is asked for. Each resolves when it is known what became of it, and rejects only for what nobody could foresee.

  /** Goes on with a hold that was made before, by this page or by another tab, if it is open. @param {string} id */
  resume(id) {
    return this.#turn(async () => {
      const hold = await this.#call("GET", `/v1/holds/${id}`).catch(() => null) // of another buyer, or long gone
      if (hold?.status === "open" || (hold && hold.id === this.hold?.id)) this.#take(hold)
    })
  }

  /** Asks for a seat. @param {number} seat @param {string} [type]  the ticket; without it the event's first */
  pick(seat, type) { return this.pickAll([seat], type) }

  /** Asks for seats, all or none. @param {number[]} seats @param {string} [type] */
  pickAll(seats, type) {
    this.#mark("asking", seats, true)
    return this.#turn(async () => {
      const wishes = seats.map(id => type ? {id, type} : {id})
      const answer = this.hold
        ? await this.#call("PATCH", `/v1/holds/${this.hold.id}`, {add: wishes})
        : await this.#create({seats: wishes})
      this.#take(answer)
    }, seats).finally(() => this.#mark("asking", seats, false))
  }

  /** Asks for the best seats. @param {Wish} wish */
  best(wish) { return this.#turn(async () => this.#replace(await this.#create({best_available: wish}))) }

  /** Asks for places of a general admission area. @param {number} area @param {number} quantity @param {string} [type] */
  places(area, quantity, type) { return this.#turn(async () => this.#replace(await this.#create({ga: {area, quantity, ...(type && {type})}}))) }

  /** Gives a seat of another ticket type. @param {number} seat @param {string} type */
  retype(seat, type) {
    return this.#turn(async () => this.hold && this.#take(await this.#call("PATCH", `/v1/holds/${this.hold.id}`, {add: [{id: seat, type}]})))
  }

  /** Gives a seat back. @param {number} seat */
  drop(seat) {
    this.#mark("dropping", [seat], true)
    return this.#turn(async () => {
      if (!this.hold || !this.seats.has(seat)) return
      if (this.hold.seats.length === 1) return this.#release()
      this.#take(await this.#call("PATCH", `/v1/holds/${this.hold.id}`, {drop: [seat]}))
    }).finally(() => this.#mark("dropping", [seat], false))
  }

  /** Gives everything back. */
  release() { return this.#turn(() => this.#release()) }

  /** Asks for more time. Said twice, it is one extension. */
  extend() {
    return this.#turn(async () => {
      if (!this.hold) return
      this.#take(await this.#call("PATCH", `/v1/holds/${this.hold.id}`, {extend: true, seen_expires_at: this.hold.expires_at}))
    })
  }

  /** Looks what has become of the hold, after an absence. */
  look() { return this.#turn(async () => this.hold && this.#take(await this.#call("GET", `/v1/holds/${this.hold.id}`))) }

  // In turn.

  /**
   * Does something after all that was asked for before.
   *
   * @param {() => Promise<unknown>} act @param {number[]} [wanted]  seats that are lost if it is refused
   * @returns {Promise<void>}
   */
  #turn(act, wanted = []) {
    const done = this.#queue.then(async () => {
      if (this.#over) return
      try {
        await act()
      } catch (err) {
        if (!(err instanceof Refused)) throw err
        await this.#refused(err.problem, wanted)
      }
    })
    this.#queue = done.catch(() => {}) // what follows is done all the same
    return done
  }

  /** @param {Problem} problem @param {number[]} wanted */
  async #refused(problem, wanted) {
    if (this.hold && ["hold_expired", "hold_closed", "not_found"].includes(problem.code)) {
      await this.#end()
      if (wanted.length) this.#tell("lost", {code: problem.code, seats: wanted.map(id => ({id, reason: "unknown"})), alternatives: []})
      return
    }
    const seats = problem.seats ?? wanted.map(id => ({id, reason: "unknown"}))
    this.#tell("lost", {code: problem.code, detail: problem.detail, seats, alternatives: problem.alternatives ?? []})
  }

  /** @param {object} what */
  #create(what) {
    const session = this.#session()
    return this.#call("POST", `/v1/events/${this.#event}/holds`, {...what, ...(session && {session})}, crypto.randomUUID())
  }

  /** A hold of its own takes the place of what was held before. @param {Hold} hold */
  async #replace(hold) {
    const before = this.hold
    this.#take(hold)
    if (before && before.id !== hold.id) await this.#call("DELETE", `/v1/holds/${before.id}`)
  }

  async #release() {
    const hold = this.hold
    if (!hold) return
    await this.#call("DELETE", `/v1/holds/${hold.id}`)
    this.#set(null)
  }

  /** Asks what the hold was in the end, and has none any more. */
  async #end() {
    const before = this.hold
    if (!before) return
    const last = await this.#call("GET", `/v1/holds/${before.id}`).catch(() => before)
    if (last.status === "open") return this.#take(last)
    this.#set(null)
    this.#tell("over", {seats: before.seats, status: last.status, booking: last.booking})
  }

  /** @param {Hold} hold */
  #take(hold) {
    this.#offset = Date.parse(hold.server_time) - Date.now()
    if (hold.status === "open") return this.#set(hold)
    const before = this.hold
    this.#set(null)
    this.#tell("over", {seats: (before ?? hold).seats, status: hold.status, booking: hold.booking})
  }

  /** @param {Hold | null} hold */
  #set(hold) {
    if (hold?.expires_at !== this.hold?.expires_at) this.#told.clear()
    this.hold = hold
    this.#tick()
    this.#tabs.postMessage(hold?.id ?? null)
    this.#tell("change", {})
  }

  /** Another tab has changed the hold. @param {string | null} id */
  #hear(id) {
    if (id) this.resume(id).catch(() => {})
    else if (this.hold) this.look().catch(() => {})
  }

  /** @param {"asking" | "dropping"} which @param {number[]} seats @param {boolean} on */
  #mark(which, seats, on) {
    const next = new Set(this[which])
    for (const seat of seats) on ? next.add(seat) : next.delete(seat)
    this[which] = next
    this.#tell("change", {})
  }

  /** Warns, and notices the end. */
  #tick() {
    clearTimeout(this.#clock)
    if (!this.hold || this.#over) return
    const left = this.left / 1000
    const due = warnings.filter(s => left <= s && !this.#told.has(s))
    if (due.length) {
      due.forEach(s => this.#told.add(s))
      this.#tell("warn", {seconds: Math.min(...due)})
    }
    if (left <= 0) {
      this.#clock = setTimeout(() => this.#turn(() => this.#end()), overAfter)
      return
    }
    const next = Math.max(0, ...warnings.filter(s => s < left))
    this.#clock = setTimeout(() => this.#tick(), Math.max(50, (left - next) * 1000))
  }

  /** @param {string} type @param {object} detail */
  #tell(type, detail) { this.dispatchEvent(new CustomEvent(type, {detail})) }

  // The API.

  /**
   * Makes a call until there is an answer. Every one of them may be repeated: POST has a key, and the others say how it is to be.
   *
   * @param {string} method @param {string} path @param {object} [body] @param {string} [key]
   * @returns {Promise<any>}
   */
  async #call(method, path, body, key) {
    for (let tries = 0; ; tries++) {
      /** @type {Response | null} */
      const answer = await fetch(path, {
        method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(patience),
        headers: {...(body && {"Content-Type": "application/json"}), ...(key && {"Idempotency-Key": key})},
      }).catch(() => null)
      let wait = Math.min(longestAgain, again * 2 ** tries)
      if (answer) {
        this.#line(true)
        const content = await answer.json().catch(() => null)
        if (answer.ok) return content
        const retryAfter = Number(answer.headers.get("Retry-After")) || 0
        if (answer.status < 500 && answer.status !== 429 && !busy.includes(content?.code) || tries >= triesAtOnce) {
          throw new Refused({code: "unavailable", detail: "", ...content, retryAfter})
        }
        wait = Math.max(wait, retryAfter * 1000)
      } else if (tries >= triesAtOnce - 1) {
        this.#line(false)
      }
      if (this.#over) throw new Refused({code: "closed", detail: "", retryAfter: 0})
      await new Promise(done => setTimeout(done, wait))
    }
  }

  /** @param {boolean} up */
  #line(up) {
    if (this.up === up) return
    this.up = up
    this.#tell("line", {up})
  }
}
