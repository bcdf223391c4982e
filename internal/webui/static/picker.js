// @ts-check
// The seats of an event to choose from a map, on top of the server's page, which stays as the list. Nothing is shown as somebody's before the
// server has said so.
import {Cart} from "./cart.js"
import {html, render, useEffect, useRef, useState} from "./preact.js"
import {SeatMap} from "./seatmap.js"

/** @typedef {import("./cart.js").Hold} Hold */
/** @typedef {import("./cart.js").Offer} Offer */
/** @typedef {import("./seatmap.js").Plan} Plan */
/** @typedef {{currency: string, timezone: string, types: string[], prices: {category: string, type: string, price: number, current: boolean}[], sections: {name: string, area?: number, category: string, price: number, free: number}[]}} Detail  GET /v1/events/{event} */
/** @typedef {{text: string, offers: Offer[], again: number[]}} News */

const free = 0, held = 1, booked = 2
const lastMinutes = 120 // seconds, in which more time is offered
const mapWords = {zoomIn: "Nearer", zoomOut: "Farther", whole: "The whole house", map: "Map of the seats. The list of sections below has them all.", wheel: "Zoom with Ctrl and the wheel"}

/**
 * Shows the map in root, once it is known.
 *
 * @param {HTMLElement} root @param {{stream: import("./seatfence.js").Stream, event: string}} options
 */
export async function start(root, {stream, event}) {
  const [plan, detail] = await Promise.all(["/map", ""].map(async path => {
    const answer = await fetch(`/v1/events/${event}${path}`)
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
    return answer.json()
  }))
  if (!plan.sections.length) return // nothing to be picked
  const cart = new Cart({event, session: () => stream.session})
  const kept = "seatfence hold " + event // a reload and another tab find it there
  cart.addEventListener("change", () => cart.hold ? localStorage.setItem(kept, cart.hold.id) : localStorage.removeItem(kept))
  const before = root.dataset.hold ?? localStorage.getItem(kept)
  root.hidden = false
  render(html`<${Picker} ...${{plan, detail, cart, stream, event, open: root.dataset.open === "true"}} />`, root)
  if (before) cart.resume(before)
}

/** @param {{plan: Plan, detail: Detail, cart: Cart, stream: import("./seatfence.js").Stream, event: string, open: boolean}} props */
function Picker({plan, detail, cart, stream, event, open}) {
  const [hold, setHold] = useState(/** @type {Hold | null} */ (null))
  const [asking, setAsking] = useState(/** @type {ReadonlySet<number>} */ (new Set()))
  const [news, setNews] = useState(/** @type {News} */ ({text: "", offers: [], again: []}))
  const [pointed, setPointed] = useState(/** @type {{seat: number, x: number, y: number} | null} */ (null))
  const [dimmed, setDimmed] = useState(/** @type {ReadonlySet<number>} */ (new Set()))
  const host = useRef(/** @type {any} */ (null)), map = useRef(/** @type {any} */ (null)), view = useRef(/** @type {any} */ (null)), wishes = useRef(/** @type {any} */ (null))
  const say = (/** @type {string} */ text, /** @type {Offer[]} */ offers = [], /** @type {number[]} */ again = []) => setNews({text, offers, again})
  const names = namesOf(plan), colors = colorsOf(plan, detail), price = moneyOf(detail.currency)
  const shown = (/** @type {number} */ seat) => names.get(seat)?.short ?? "A seat"

  useEffect(() => {
    const m = map.current = new SeatMap(host.current, {plan, words: mapWords, colorOf: c => colors.get(c) ?? 0, caption: captionOf(detail, price)})
    host.current.seatmap = m // for who looks into the page
    const v = view.current = stream.viewMap(event, change => {
      if (change.all) m.setStates(seat => v.state(seat))
      else m.changed(change.seats)
    })
    const pick = (/** @type {any} */ e) => {
      const {seat} = e.detail, state = v.epoch ? v.state(seat) : booked
      if (cart.seats.has(seat)) return void cart.drop(seat)
      if (cart.asking.has(seat) || !open) return
      if (state === free) {
        say("")
        return void cart.pick(seat)
      }
      const until = v.heldUntil.get(seat)
      say(state === held ? `Someone is buying ${shown(seat)} right now. If they don't finish, it comes back${until ? " at " + clock(until, detail.timezone) : ""}.`
        : state === booked ? `${shown(seat)} is sold.` : `${shown(seat)} is not for sale.`)
    }
    m.addEventListener("pick", pick)
    m.addEventListener("hover", (/** @type {any} */ e) => setPointed(e.detail.seat === null ? null : e.detail))
    m.addEventListener("area", (/** @type {any} */ e) => document.getElementById("quantity-" + e.detail.area)?.focus())
    const off = [
      heard(cart, "change", () => {
        setHold(cart.hold)
        setAsking(cart.asking)
        m.setChosen(new Set(cart.seats.keys()))
        m.setAsking(cart.asking)
      }),
      heard(cart, "lost", lost => say(lossOf(lost, shown), lost.alternatives.slice(0, 2))),
      heard(cart, "over", ({seats, status, booking}) => {
        if (booking) location.assign("/bookings/" + booking)
        else if (status === "expired") say("Your time is up and the seats are free again.", [], seats.map((/** @type {any} */ s) => s.id))
      }),
      heard(cart, "line", ({up}) => say(up || !cart.hold ? "" : `No connection. Your seats stay yours until ${clock(Date.parse(cart.hold.expires_at), detail.timezone)}; we keep trying.`)),
      stream.on("open", ({away}) => away && cart.look()),
    ]
    const wish = document.querySelector("section[aria-labelledby=best]"), best = wish?.querySelector("form")
    if (wish) wishes.current.append(wish) // the page's own form, beside the map
    const find = (/** @type {Event} */ e) => {
      e.preventDefault()
      say("")
      cart.best(wishOf(/** @type {HTMLFormElement} */ (e.target))).then(() => {
        const first = cart.hold?.seats[0]
        if (first) m.zoomTo({seat: first.id})
        if (cart.hold?.together === false) say("They are not all side by side: there was nothing closer together.")
      })
    }
    best?.addEventListener("submit", find)
    return () => {
      off.forEach(f => f())
      best?.removeEventListener("submit", find)
      v.close()
      m.destroy()
    }
  }, [])
  useEffect(() => {
    if (hold) stream.showHold(hold.id).catch(() => {})
  }, [hold?.id])
  useEffect(() => map.current.setFilter(dimmed.size ? (/** @type {any} */ s) => !dimmed.has(s.category) : null), [dimmed])

  const toggle = (/** @type {number} */ id) => setDimmed(before => {
    const next = new Set(before)
    return next.delete(id) ? next : next.add(id)
  })
  const take = (/** @type {number[]} */ seats) => {
    say("")
    cart.pickAll(seats)
  }
  const still = news.again.filter(id => view.current?.state(id) === free)
  return html`
    <div class="map" ref=${host}>${pointed && html`<${Card} ...${{pointed, name: names.get(pointed.seat), seat: map.current.describe(pointed.seat).seat, plan, detail, price}} />`}</div>
    <div class="choice">
      <div ref=${wishes}></div>
      <ul class="categories" aria-label="Categories">${plan.categories.map(c => html`<li key=${c.id}><button type="button" class="quiet" aria-pressed=${String(!dimmed.has(c.id))} onClick=${() => toggle(c.id)}>
        <span class=${"swatch cat-" + ((colors.get(c.id) ?? 0) + 1)}></span> ${c.name} <span class="muted">${priceOf(detail, c.name, price)}</span></button></li>`)}</ul>
      <p class="news" role="status">${news.text}</p>
      ${news.offers.length > 0 && html`<p class="inline"><button type="button" class="next" onClick=${() => take(news.offers.map(o => o.id))}>Take ${joined(news.offers.map(o => shortOf(o.label, o.section)))}</button></p>`}
      ${still.length > 0 && html`<p class="inline"><button type="button" class="next" onClick=${() => take(still)}>Take ${joined(still.map(shown))} again</button></p>`}
      <h2>Your seats</h2>
      ${hold ? html`<${Chosen} ...${{hold, cart, types: detail.types, price, zone: detail.timezone, shown}} />`
        : html`<p class="muted">${asking.size ? `Asking for ${joined([...asking].map(shown))}…` : open ? "Choose seats on the map, or let us find the best ones." : "No seats can be held at the moment."}</p>`}
    </div>`
}

/** What a seat is, beside it. @param {any} props */
function Card({pointed, name, seat, plan, detail, price}) {
  const box = useRef(/** @type {any} */ (null))
  useEffect(() => { // a style attribute is not allowed here
    box.current.style.translate = `${pointed.x + 14}px ${pointed.y + 14}px`
  })
  const category = plan.categories.find((/** @type {any} */ c) => c.id === seat.category)?.name
  return html`<div class="card" ref=${box}><strong>${name?.long}</strong><br />${category}, ${priceOf(detail, category, price)}
    ${seat.restricted_view && html`<br />restricted view`}${seat.accessible && html`<br />accessible`}${seat.companion && html`<br />for a companion`}</div>`
}

/** The seats of a hold, how long they are held, and what comes next. @param {{hold: Hold, cart: Cart, types: string[], price: (amount: number) => string, zone: string, shown: (seat: number) => string}} props */
function Chosen({hold, cart, types, price, zone, shown}) {
  const [left, setLeft] = useState(cart.left)
  useEffect(() => {
    setLeft(cart.left)
    const timer = setInterval(() => setLeft(cart.left), 1000)
    return () => clearInterval(timer)
  }, [hold.expires_at])
  const seconds = Math.ceil(left / 1000), several = types.length > 1
  return html`<p><strong>${joined(hold.seats.map(s => shown(s.id)))} ${hold.seats.length > 1 ? "are" : "is"} yours until ${clock(Date.parse(hold.expires_at), zone)}.</strong>
      <span class="countdown" aria-hidden="true">${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}</span></p>
    <ul class="chosen">${hold.seats.map(s => html`<li key=${s.id}><span>${s.label || s.section}</span>
      ${several && html`<select aria-label=${"Ticket for " + s.label} value=${s.type} onChange=${(/** @type {any} */ e) => cart.retype(s.id, e.target.value)}>${types.map(t => html`<option>${t}</option>`)}</select>`}
      <span class="number">${price(s.price)}</span><button type="button" class="quiet" onClick=${() => cart.drop(s.id)}>Give back<span class="hidden"> ${s.label}</span></button></li>`)}</ul>
    ${seconds <= lastMinutes && hold.extensions_left > 0 && html`<p class="inline">Need more time? <button type="button" onClick=${() => cart.extend()}>More time</button></p>`}
    <p class="sum"><span>Total</span> <strong>${price(hold.total)}</strong></p>
    <p><a class="next button" href=${"/holds/" + hold.id}>Continue</a></p>`
}

/** @param {EventTarget} target @param {string} type @param {(detail: any) => void} act */
function heard(target, type, act) {
  const f = (/** @type {any} */ e) => act(e.detail)
  target.addEventListener(type, f)
  return () => target.removeEventListener(type, f)
}

/** A seat's name without that of its section. @param {string} label @param {string} section */
function shortOf(label, section) { return label.startsWith(section + " ") ? label.slice(section.length + 1) : label }

/** @param {Plan} plan @returns {Map<number, {short: string, long: string}>} */
function namesOf(plan) {
  const all = new Map()
  for (const {name, rows} of plan.sections) for (const row of rows) for (const s of row.seats) {
    all.set(s.id, {short: shortOf(s.label, name), long: [name, row.label && "row " + row.label, "seat " + s.number].filter(Boolean).join(", ")})
  }
  return all
}

/** The colours of categories, the dearest first. @param {Plan} plan @param {Detail} detail @returns {Map<number, number>} */
function colorsOf(plan, detail) {
  const now = (/** @type {string} */ name) => detail.prices.find(p => p.category === name && p.current)?.price ?? 0
  return new Map([...plan.categories].sort((a, b) => now(b.name) - now(a.name)).map((c, i) => [c.id, i]))
}

/** What a category costs now, as the first ticket type. @param {Detail} detail @param {string | undefined} category @param {(amount: number) => string} price */
function priceOf(detail, category, price) {
  const found = detail.prices.find(p => p.category === category && p.type === detail.types[0] && p.current)
  return found ? price(found.price) : ""
}

/** @param {Detail} detail @param {(amount: number) => string} price */
function captionOf(detail, price) {
  return (/** @type {{name: string, area: number}} */ {name, area}) => {
    const parts = detail.sections.filter(s => area ? s.area === area : s.area === undefined && s.name === name)
    const least = Math.min(...parts.map(s => s.price)), most = Math.max(...parts.map(s => s.price))
    return parts.length ? [name, (least < most ? "from " : "") + price(least)] : [name]
  }
}

/** @param {string} currency @returns {(amount: number) => string} */
function moneyOf(currency) {
  const digits = new Intl.NumberFormat("en", {style: "currency", currency}).resolvedOptions().maximumFractionDigits ?? 2
  return amount => `${(amount / 10 ** digits).toFixed(digits)} ${currency}`
}

/** @param {number} ms @param {string} zone */
function clock(ms, zone) { return new Date(ms).toLocaleTimeString("en-GB", {timeZone: zone, hour: "2-digit", minute: "2-digit"}) }

/** @param {string[]} names */
function joined(names) { return names.length > 1 ? names.slice(0, -1).join(", ") + " and " + names.at(-1) : names[0] ?? "" }

/** What is said of seats that were not to be had. @param {{code: string, detail?: string, seats: {id: number, reason: string}[], alternatives: Offer[]}} lost @param {(seat: number) => string} shown */
function lossOf({code, detail, seats, alternatives}, shown) {
  const who = joined(seats.map(s => shown(s.id))), one = seats.length === 1
  const offer = alternatives.length ? ` ${joined(alternatives.slice(0, 2).map(a => shortOf(a.label, a.section)))} ${alternatives.length > 1 ? "are" : "is"} free.` : ""
  switch (seats[0]?.reason) {
    case "booked": return `${who} ${one ? "was" : "were"} just bought by someone else.${offer}`
    case "held": case "busy": return `Someone is buying ${who} right now.${offer}`
    case "blocked": case "allotted": return `${who} ${one ? "is" : "are"} not for sale.${offer}`
    case "alone": return `${who} would be left alone.${offer}`
  }
  if (code === "unavailable" || code === "overloaded") return "That did not go through. Nothing is lost; try once more."
  return detail || "These seats cannot be held at the moment."
}

/** @param {HTMLFormElement} form @returns {import("./cart.js").Wish} */
function wishOf(form) {
  const data = new FormData(form), types = data.getAll("type"), numbers = data.getAll("number").map(Number)
  const wanted = types.map((type, i) => ({type: String(type), quantity: numbers[i] || 0})).filter(w => w.quantity > 0)
  const category = String(data.get("category") ?? "")
  return {...(wanted.length ? {types: wanted} : {quantity: 1}), ...(category && {category})}
}
