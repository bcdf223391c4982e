// @ts-check
/**
 * The browser's side of the stream (docs/protocol.md): one connection that comes back by itself, seat maps and configurators that are kept
 * whole over it, and the locks of an editor. What it shows is information; a seat is held and a draft is saved by REST calls.
 *
 *     import {connect} from "https://tickets.example/static/seatfence.js"
 *     const stream = connect({ticket: async () => (await fetch("/our/own/ticket")).text()})
 *     const map = stream.viewMap("7", change => paint(map, change))
 *
 * @module seatfence
 */

/** @typedef {{user: string, name: string, own_other_tab?: boolean}} Person */
/** @typedef {{configurator: string, item?: string, page?: string}} Target  the whole configurator, or one of its pages; item "" is the configurator's own */
/** @typedef {{all: boolean, seats: number[], areas: number[]}} MapChange  what is another than before; all: everything may be */
/** @typedef {{type: string, [member: string]: any}} Frame */

const protocol = 1
const answerWithin = 10_000 // ms
const welcomeWithin = 15_000
const stableAfter = 10_000 // a connection that lived this long starts the waits anew
const quietFor = 30_000 // then the line is tried: browsers keep the server's pings from scripts
const activityEvery = 15_000
const longestWait = 30_000
const ended = [4400, 4403, 4409, 4413] // closed with these, a client stays away

/** What was asked for and did not happen. `code` is the server's, or "offline" or "timeout". */
export class StreamError extends Error {
  /** @param {string} code @param {Frame} [frame] */
  constructor(code, frame) {
    super(frame?.detail ?? code)
    this.name = "StreamError"
    this.code = code
    /** @type {Person | undefined} who has the lock that was asked for */
    this.by = frame?.by
    /** @type {number | undefined} seconds */
    this.retryAfter = frame?.retry_after
  }
}

/**
 * Opens the stream and keeps it open.
 *
 * @param {object} [options]
 * @param {string | URL} [options.url]  of the stream; that of the server this module came from
 * @param {() => Promise<string>} [options.ticket]  a new ticket for each try; without it the site's cookie says who connects
 * @param {Storage | null} [options.storage]  where a reload finds the session; null: a reload is a new one
 * @returns {Stream}
 */
export function connect(options = {}) {
  return new Stream(options)
}

export class Stream {
  /** @type {string | null} the name of this page for `POST …/holds`; null without a connection */
  session = null

  #url
  #ticket
  #storage
  #key
  /** @type {{token?: string, locks?: (Target & {fence: number})[], resources?: string[]}} what a reload goes on with */
  #kept = {}
  /** @type {WebSocket | null} */
  #socket = null
  #welcomed = false
  #over = false
  #hold = "" // that the page shows
  #asleep = false // hidden for good, or in the back-forward cache
  #tries = 0
  #turned = 0 // 4401 in a row
  /** @type {number | null} seconds that a draining server asked for */
  #drained = null
  #mayWake = false
  #heard = 0
  #offset = 0
  #ids = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #deadline
  /** @type {Map<number, {resolve: (f: Frame) => void, reject: (e: StreamError) => void, timer: ReturnType<typeof setTimeout>}>} */
  #asked = new Map()
  /** @type {Map<string, Set<MapView | ConfiguratorView>>} */
  #views = new Map()
  /** @type {Map<string, Target & {fence: number}>} */
  #locks = new Map()
  /** @type {Map<string, number>} */
  #active = new Map()
  /** @type {Map<string, Set<(e: any) => void>>} */
  #listeners = new Map()
  #unlisten = new AbortController()

  /** @param {Parameters<typeof connect>[0]} [options] */
  constructor({url, ticket, storage} = {}) {
    this.#url = new URL(url ?? "/v1/stream", url ? location.href : import.meta.url)
    this.#url.protocol = this.#url.protocol.replace("http", "ws")
    this.#ticket = ticket
    this.#storage = storage === undefined ? tabStorage() : storage
    this.#key = "seatfence " + this.#url
    this.#claim()
    const on = (/** @type {EventTarget} */ target, /** @type {string} */ type, /** @type {(e: any) => void} */ f) =>
      target.addEventListener(type, f, {signal: this.#unlisten.signal})
    on(window, "pagehide", () => this.#sleep())
    on(window, "pageshow", e => e.persisted && this.#rise())
    on(window, "online", () => this.#wake())
    on(document, "visibilitychange", () => document.hidden || this.#wake())
    this.#open()
  }

  /**
   * Listens to what happens to the connection: "open" {resumed, away: ms}, "down" {code, wait: ms}, "end" {code} (it will not come back),
   * "lock-lost" {configurator, item, page, why, by?}, "idle-warning" {resource, seconds}, and any frame of the server by its type.
   *
   * @param {string} type @param {(event: any) => void} listener
   * @returns {() => void} stops listening
   */
  on(type, listener) {
    const all = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, all.add(listener))
    return () => void all.delete(listener)
  }

  /** Whether the server can be asked now. */
  get connected() { return this.#welcomed }

  /** The server's time in ms since 1970, as far as the last welcome tells. */
  now() { return Date.now() + this.#offset }

  /** Keeps a seat map. @param {string | number} event @param {(change: MapChange) => void} onChange  at most once a frame of the screen */
  viewMap(event, onChange) { return this.#view(new MapView(this, `event:${event}`, onChange)) }

  /** Keeps who is in a configurator and what they edit. @param {string | number} event @param {() => void} onChange */
  viewConfigurator(event, onChange) { return this.#view(new ConfiguratorView(this, `configurator:${event}`, onChange)) }

  /**
   * Takes a lock; rejects with code "locked" and `by` if someone has it.
   *
   * @param {Target} target @param {{takeOver?: boolean}} [how]
   * @returns {Promise<number>} the edit fence that goes with each save
   */
  async lock(target, {takeOver} = {}) {
    const frame = await this.ask({...lockFrame("lock", target), ...(takeOver && {take_over: true})})
    this.#locks.set(lockKey(target), {...target, fence: frame.fence})
    return frame.fence
  }

  /** Gives a lock back. @param {Target} target */
  async unlock(target) {
    this.#locks.delete(lockKey(target))
    await this.ask(lockFrame("unlock", target))
  }

  /** Takes the locks that somebody else has. @param {Target} target */
  takeOver(target) { return this.lock(target, {takeOver: true}) }

  /** The fence of a lock that this page has, or undefined. @param {Target} target */
  fence(target) { return this.#locks.get(lockKey(target))?.fence }

  /** Says that somebody edits; call it at each edit. @param {string} configurator */
  activity(configurator) {
    const now = performance.now()
    if (!this.#welcomed || now - (this.#active.get(configurator) ?? -activityEvery) < activityEvery) return
    this.#active.set(configurator, now)
    this.#send({type: "activity", configurator})
  }

  /** Says that this page shows a hold: it lives while a page does. @param {string} hold */
  async showHold(hold) {
    this.#hold = hold
    await this.ask({type: "show-hold", hold})
  }

  /** Ends the session, its locks and its place at once, and closes. */
  bye() {
    if (this.#welcomed) this.#send({type: "bye"})
    this.#kept = {}
    this.#locks.clear()
    this.#finish(1000)
  }

  /**
   * Asks the server something.
   *
   * @param {Frame} frame @param {number} [within] ms
   * @returns {Promise<Frame>} the answer
   */
  ask(frame, within = answerWithin) {
    return new Promise((resolve, reject) => {
      if (!this.#welcomed) return reject(new StreamError("offline"))
      const id = ++this.#ids
      const timer = setTimeout(() => {
        this.#asked.delete(id)
        reject(new StreamError("timeout"))
      }, within)
      this.#asked.set(id, {resolve, reject, timer})
      this.#send({...frame, id})
    })
  }

  /** @template {MapView | ConfiguratorView} V @param {V} view @returns {V} */
  #view(view) {
    const all = this.#views.get(view.resource) ?? new Set()
    this.#views.set(view.resource, all.add(view))
    view.close = () => {
      if (!all.delete(view) || all.size) return
      this.#views.delete(view.resource)
      this.ask({type: "leave-resource", resource: view.resource}).catch(ignore)
    }
    view.renew()
    return view
  }

  // The connection.

  /**
   * A page takes the session out of the tab's storage while it lives and puts it back when it goes. So a reload finds it there, and the
   * duplicate of a living tab, which starts with a copy of the storage, does not.
   */
  #claim() {
    try {
      this.#kept = JSON.parse(this.#storage?.getItem(this.#key) ?? "{}")
      this.#storage?.removeItem(this.#key)
    } catch {
      this.#kept = {}
    }
  }

  #sleep() {
    if (this.#over || this.#asleep) return
    this.#asleep = true
    const kept = {...this.#kept, locks: [...this.#locks.values()], resources: [...this.#views.keys()]}
    try {
      if (kept.token) this.#storage?.setItem(this.#key, JSON.stringify(kept))
    } catch {} // full or forbidden: the next page is a new session
    // No "bye": a page that is hidden may be reloaded, and must find its locks.
    this.#drop(1000)
  }

  #rise() {
    if (this.#over) return
    this.#asleep = false
    this.#claim() // a later page of the tab may have gone on with the session
    this.#open()
  }

  async #open() {
    clearTimeout(this.#timer)
    this.#mayWake = false
    /** @type {any} */
    const attempt = (this.#socket = /** @type {any} */ ({close() {}}))
    this.#deadline = setTimeout(() => this.#lost(attempt, 0), welcomeWithin)
    const url = new URL(this.#url)
    if (this.#ticket) {
      try {
        url.searchParams.set("ticket", await this.#ticket())
      } catch {
        return this.#lost(attempt, 0)
      }
      if (this.#socket !== attempt) return
    }
    clearTimeout(this.#deadline)
    const socket = (this.#socket = new WebSocket(url))
    this.#deadline = setTimeout(() => this.#lost(socket, 0), welcomeWithin)
    socket.onopen = () => socket.send(JSON.stringify({type: "hello", protocol, token: this.#kept.token}))
    socket.onmessage = e => this.#socket === socket && this.#receive(JSON.parse(e.data))
    socket.onclose = e => this.#lost(socket, e.code)
  }

  /** @param {WebSocket} socket @param {number} code */
  #lost(socket, code) {
    if (this.#socket !== socket) return
    const drained = this.#drained
    this.#drop()
    if (code === 4401) this.#turned++
    if (ended.includes(code) || (code === 4401 && (!this.#ticket || this.#turned > 1))) return this.#finish(code)
    this.#tries++
    let wait = Math.random() * Math.min(longestWait, 2 ** this.#tries * 500)
    if (code === 1012 || drained !== null) wait = (drained ?? Math.random() * 5) * 1000
    if (code === 4429) wait = 5000
    this.#mayWake = code !== 4429
    this.#timer = setTimeout(() => this.#open(), wait)
    this.#emit("down", {code, wait})
  }

  /** @param {number} [code] */
  #drop(code) {
    const socket = this.#socket
    this.#socket = null
    this.#welcomed = false
    this.session = null
    this.#drained = null
    clearTimeout(this.#timer)
    clearTimeout(this.#deadline)
    socket?.close(code)
    for (const asked of this.#asked.values()) {
      clearTimeout(asked.timer)
      asked.reject(new StreamError("offline"))
    }
    this.#asked.clear()
  }

  /** @param {number} code */
  #finish(code) {
    this.#over = true
    this.#unlisten.abort()
    this.#drop(1000)
    this.#emit("end", {code})
  }

  #wake() {
    if (this.#over || this.#asleep) return
    if (!this.#socket) {
      if (this.#mayWake) this.#open()
    } else if (this.#welcomed) {
      this.#probe()
    }
  }

  /** Tries whether the line still is one: a laptop that slept does not hear that it was cut. */
  async #probe() {
    const socket = this.#socket
    const view = [...this.#views.values()][0]?.values().next().value
    if (!socket || (!view && !this.#hold)) return
    const question = view ? {type: "view-resource", resource: view.resource, epoch: view.epoch, seq: view.seq} : {type: "show-hold", hold: this.#hold}
    try {
      await this.ask(question, answerWithin / 2)
    } catch (err) {
      if (err instanceof StreamError && err.code === "timeout") this.#lost(socket, 0)
    }
  }

  #listen() {
    this.#heard = Date.now()
    clearTimeout(this.#deadline)
    this.#deadline = setTimeout(() => this.#probe(), quietFor)
  }

  /** @param {Frame} frame */
  #send(frame) { this.#socket?.send(JSON.stringify(frame)) }

  /** @param {Frame} frame */
  #receive(frame) {
    const away = this.#heard ? Date.now() - this.#heard : 0
    this.#listen()
    switch (frame.type) {
      case "welcome":
        return this.#welcome(frame, away)
      case "drain":
        this.#drained = frame.retry_after
        return this.#socket && this.#lost(this.#socket, 1012)
      case "lock-lost": {
        const configurator = frame.resource.replace("configurator:", "")
        this.#locks.delete(lockKey({...frame, configurator}))
        return this.#emit("lock-lost", {...frame, configurator})
      }
    }
    for (const view of this.#views.get(frame.resource) ?? []) view.apply(frame)
    this.#answer(frame)
    this.#emit(frame.type, frame)
  }

  /** @param {Frame} frame */
  #answer(frame) {
    const asked = this.#asked.get(frame.id)
    if (!asked) return
    this.#asked.delete(frame.id)
    clearTimeout(asked.timer)
    if (frame.type === "error") asked.reject(new StreamError(frame.code, frame))
    else asked.resolve(frame)
  }

  /** @param {Frame} frame @param {number} away */
  #welcome(frame, away) {
    const before = this.#kept
    this.#kept = {token: frame.token}
    this.session = frame.session
    this.#welcomed = true
    this.#turned = 0
    this.#offset = Date.parse(frame.server_time) - Date.now()
    const socket = this.#socket
    setTimeout(() => this.#socket === socket && (this.#tries = 0), stableAfter)
    this.#inherit(before, frame.resumed)
    for (const all of this.#views.values()) for (const view of all) view.renew()
    for (const lock of this.#locks.values()) this.#relock(lock, frame.resumed)
    this.#emit("open", {resumed: frame.resumed, away, session: frame.session})
  }

  /**
   * Goes on with what the page before had, where this one looks at the same, and gives up the rest.
   *
   * @param {{locks?: (Target & {fence: number})[], resources?: string[]}} before @param {boolean} resumed
   */
  #inherit({locks = [], resources = []}, resumed) {
    for (const lock of locks) {
      if (this.#views.has("configurator:" + lock.configurator)) this.#locks.set(lockKey(lock), lock)
      else if (resumed) this.ask(lockFrame("unlock", lock)).catch(ignore)
    }
    for (const resource of resources) {
      if (resumed && !this.#views.has(resource)) this.ask({type: "leave-resource", resource}).catch(ignore)
    }
  }

  /**
   * A session that goes on has its locks, and is told their fences again. A new one does not take them: what the page shows may be old.
   *
   * @param {Target} lock @param {boolean} resumed
   */
  async #relock({configurator, item, page}, resumed) {
    const target = {configurator, item, page}
    try {
      if (!resumed) throw new StreamError("expired")
      this.#emit("lock-kept", {...target, fence: await this.lock(target)})
    } catch (err) {
      const lost = err instanceof StreamError ? err : new StreamError("expired")
      if (lost.code === "offline" || lost.code === "timeout") return // asked again when the connection is back
      this.#locks.delete(lockKey(target))
      this.#emit("lock-lost", {...target, why: lost.code === "locked" ? "taken-over" : "expired", by: lost.by})
    }
  }

  /** @param {string} type @param {any} event */
  #emit(type, event) {
    for (const listener of [...(this.#listeners.get(type) ?? [])]) listener(event)
  }
}

/** What both kinds of views share: a position in a numbered stream, and asking again when a number is missing. */
class View {
  epoch = ""
  seq = 0
  /** Stops looking. */
  close() {}
  #asking = false
  #frame = 0

  /** @param {Stream} stream @param {string} resource @param {(change: any) => void} onChange */
  constructor(stream, resource, onChange) {
    this.stream = stream
    this.resource = resource
    this.onChange = onChange
  }

  /** Asks for what came after the position, or for everything. */
  async renew() {
    if (this.#asking || !this.stream.connected) return
    this.#asking = true
    const {resource, epoch, seq} = this
    try {
      await this.stream.ask({type: "view-resource", resource, ...(epoch && {epoch, seq})})
    } catch (err) {
      const code = err instanceof StreamError ? err.code : ""
      if (code === "timeout" || code === "unavailable") setTimeout(() => this.renew(), Math.random() * 5000)
    } finally {
      this.#asking = false
    }
  }

  /** @param {Frame} frame up to which everything is known */
  reached({epoch = this.epoch, seq}) {
    this.epoch = epoch
    this.seq = seq
  }

  /** Tells of all changes at once before the screen is drawn. */
  changed() {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => {
      this.#frame = 0
      this.onChange(this.take())
    })
  }

  /** @returns {any} */
  take() {}
}

/** A seat map as the server knows it. */
export class MapView extends View {
  /** The state of seat `first + i`: 0 free, 1 held, 2 booked, 3 blocked or no such seat. */
  states = new Uint8Array()
  first = 1
  /** @type {Map<number, number>} when the hold on a seat ends, ms since 1970; it may be extended */
  heldUntil = new Map()
  /** @type {Map<number, number>} free places of each area */
  areas = new Map()
  /** How many look at this map; 0 if unknown. */
  viewers = 0
  #all = false
  /** @type {Set<number>} */
  #seats = new Set()
  /** @type {Set<number>} */
  #areas = new Set()

  /** @param {number} seat @returns {number} */
  state(seat) { return this.states[seat - this.first] ?? 3 }

  /** @param {Frame} frame */
  apply(frame) {
    if (frame.type === "view") this.#replace(frame)
    else if (frame.type === "viewers") this.viewers = frame.count
    else if (frame.type !== "seats") return
    else if (frame.epoch !== this.epoch || frame.from > this.seq) return void this.renew()
    else if (frame.seq <= this.seq) return
    else {
      for (const cell of frame.cells) this.#set(cell)
      this.reached(frame)
    }
    this.changed()
  }

  /** @param {Frame} frame */
  #replace(frame) {
    this.reached(frame)
    this.first = frame.first
    const packed = atob(frame.states)
    this.states = new Uint8Array(packed.length * 4)
    for (let i = 0; i < this.states.length; i++) this.states[i] = (packed.charCodeAt(i >> 2) >> ((i & 3) * 2)) & 3
    this.heldUntil = new Map()
    for (const [until, ...ids] of frame.held ?? []) for (const id of ids) this.heldUntil.set(id, until)
    this.areas = new Map(frame.areas ?? [])
    this.#all = true
  }

  /** @param {any[]} cell */
  #set([seat, state, free, until]) {
    if (seat === "a") {
      this.areas.set(state, free)
      this.#areas.add(state)
      return
    }
    const at = seat - this.first
    if (at < 0 || at >= this.states.length) return // of a plan that is newer than this map: a view with another epoch follows
    this.states[at] = state
    if (state === 1 && until) this.heldUntil.set(seat, until)
    else this.heldUntil.delete(seat)
    this.#seats.add(seat)
  }

  /** @returns {MapChange} */
  take() {
    const change = {all: this.#all, seats: [...this.#seats], areas: [...this.#areas]}
    this.#all = false
    this.#seats.clear()
    this.#areas.clear()
    return change
  }
}

/** Who is in a configurator, and who edits. */
export class ConfiguratorView extends View {
  /** @type {(Person & {isEditing: boolean})[]} */
  viewers = []
  /** @type {Person | null} who has the whole configurator */
  lockedBy = null
  /** @type {{item: string, page: string, by: Person, state: string}[]} */
  locks = []
  /** Whether this page may edit now: its user is allowed to, and nobody else has the whole. */
  canEdit = false

  /** @param {Frame} frame */
  apply(frame) {
    if (frame.type === "view") {
      this.reached(frame)
      const {viewers, lockedBy, locks, canEdit} = frame
      Object.assign(this, {viewers: viewers ?? [], lockedBy: lockedBy ?? null, locks: locks ?? [], canEdit: !!canEdit})
      return this.changed()
    }
    if (frame.seq !== undefined) {
      if (frame.seq <= this.seq && (frame.epoch ?? this.epoch) === this.epoch) return
      if (frame.seq !== this.seq + 1) return void this.renew()
      this.reached(frame)
    }
    if ("canEdit" in frame) this.canEdit = frame.canEdit
    const {item = "", page = "", by} = frame
    const others = this.locks.filter(l => l.item !== item || l.page !== page)
    switch (frame.type) {
      case "viewer-joined":
      case "viewer-changed":
      case "viewer-left": {
        const left = this.viewers.filter(v => v.user !== frame.viewer.user)
        this.viewers = frame.type === "viewer-left" ? left : [...left, frame.viewer]
        break
      }
      case "lock-acquired":
      case "lock-detached":
      case "lock-attached":
        this.locks = [...others, {item, page, by, state: frame.type === "lock-detached" ? "detached" : "held"}]
        if (!page) this.lockedBy = by
        break
      case "lock-released":
        this.locks = others
        if (!page) this.lockedBy = null
        break
    }
    this.changed()
  }
}

/** @param {Target} target */
const lockKey = ({configurator, item = "", page = ""}) => `${configurator}/${item}/${page}`

/** @param {"lock" | "unlock"} verb @param {Target} target @returns {Frame} */
function lockFrame(verb, {configurator, item = "", page = ""}) {
  return page ? {type: verb + "-item-subresource", configurator, item, page} : {type: verb + "-configurator", configurator}
}

/** @returns {Storage | null} */
function tabStorage() {
  try {
    return sessionStorage
  } catch {
    return null // forbidden by the browser's settings
  }
}

function ignore() {}
