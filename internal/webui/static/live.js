// @ts-check
// The pages of buyers while they are open: seats turn taken and free, and a hold is known to be looked at.
import {connect} from "./seatfence.js"

const script = /** @type {HTMLElement} */ (document.querySelector("script[data-event]"))
const {event, zone, open, hold, until, ended} = /** @type {Record<string, string>} */ (script.dataset)
const stream = connect()

const graceOfHolds = 45_000 // ms; who was away for less has kept them
const patience = 5_000 // with a connection that is gone
const newsFresh = 60_000
const againKey = "seatfence again", newsKey = "seatfence news"

/** @param {number} ms */
const clock = ms => new Date(ms).toLocaleTimeString("en-GB", {timeZone: zone, hour: "2-digit", minute: "2-digit"})

// What is said aloud stands where the visitor acts, and stays.
const news = document.createElement("p")
news.setAttribute("role", "status")
news.className = "news"
const bar = document.querySelector(".bar")
if (bar) bar.prepend(news)
else document.querySelector("h1")?.after(news)

/** @param {string} text */
function say(text) {
  if (news.textContent !== text) news.textContent = text
}

// The connection.

/** @type {ReturnType<typeof setTimeout> | undefined} */
let lost
let lineNews = false
stream.on("down", () => {
  lost ??= setTimeout(() => {
    lineNews = true
    say(until ? `No connection. Your seats stay yours until ${clock(Date.parse(until))}; we keep trying.`
      : "No connection. What you see may be old; we keep trying.")
  }, patience)
})
stream.on("open", () => {
  clearTimeout(lost)
  lost = undefined
  if (lineNews) say("")
  lineNews = false
  fill()
})
stream.on("end", () => say("This page does not follow the sale any more. Load it again to see what is free."))

/** A form that holds seats names this page: the seats are given back some time after it has gone. */
function fill() {
  for (const form of document.querySelectorAll("form[method=post][action$='/holds']")) {
    let field = /** @type {HTMLInputElement | null} */ (form.querySelector("input[name=session]"))
    if (!field) {
      field = document.createElement("input")
      field.type = "hidden"
      field.name = "session"
      form.append(field)
    }
    field.value = stream.session ?? ""
  }
}

// Seats and areas.

const looks = ["free", "held", "booked", "blocked"]
const shown = ["free", "held", "sold", "closed"]
const spoken = ["free", "held", "sold", "not for sale"]
/** @type {Map<number, HTMLElement>} */
const chips = new Map()
for (const chip of document.querySelectorAll("[data-seat]")) chips.set(Number(/** @type {HTMLElement} */ (chip).dataset.seat), /** @type {HTMLElement} */ (chip))
const areas = document.querySelectorAll("[data-area]")
let sent = false // what changes now is what this page asked for
addEventListener("submit", () => (sent = true))
addEventListener("pageshow", () => (sent = false))

/** @param {import("./seatfence.js").MapView} map @param {number} seat @returns {string} what to say about it */
function paint(map, seat) {
  const chip = chips.get(seat)
  const state = map.state(seat)
  if (!chip || chip.classList.contains(looks[state]) || (state === 1 && chip.classList.contains("yours"))) return ""
  const box = /** @type {HTMLInputElement} */ (chip.querySelector("input"))
  const unticked = box.checked
  chip.className = "seat live " + looks[state]
  box.checked = false
  box.disabled = state !== 0 || open !== "true"
  box.name = box.disabled ? "" : "seat"
  box.value = String(seat)
  const word = chip.querySelector("small"), state2 = chip.querySelector("[data-state]")
  if (word) word.textContent = state ? shown[state] : (chip.dataset.free ?? shown[0])
  if (state2) state2.textContent = spoken[state]
  if (!unticked) return ""
  const name = chip.dataset.name
  if (state === 2) return `${name} was just bought by someone else.`
  if (state === 3) return `${name} is not for sale any more.`
  const end = map.heldUntil.get(seat)
  return `Someone is buying ${name} right now. If they don't finish, it comes back${end ? " at " + clock(end) : ""}.`
}

if (chips.size || areas.length) {
  const looking = document.createElement("p")
  looking.className = "looking muted"
  document.querySelector("h1")?.after(looking)
  const map = stream.viewMap(event, change => {
    if (sent) return
    const said = [...(change.all ? chips.keys() : change.seats)].map(seat => paint(map, seat)).filter(Boolean)
    if (said.length) say(said.join(" ") + (said.length > 1 ? " They are no longer ticked." : " It is no longer ticked."))
    for (const area of /** @type {NodeListOf<HTMLElement>} */ (areas)) follow(area, map.areas.get(Number(area.dataset.area)))
    looking.textContent = map.viewers > 1 ? `${map.viewers} people are looking.` : ""
  })
}

const picker = document.getElementById("picker")
if (picker) import("./picker.js").then(m => m.start(picker, {stream, event})).catch(err => console.warn("no map:", err)) // the list is there

/** @param {HTMLElement} area @param {number | undefined} free */
function follow(area, free) {
  if (free === undefined) return
  area.textContent = free ? `${free} of ${area.dataset.total} left.` : "None left."
  const quantity = /** @type {HTMLInputElement | null} */ (document.getElementById("quantity-" + area.dataset.area))
  if (quantity && free) quantity.max = String(Math.min(free, Number(quantity.dataset.most)))
}

// A hold.

if (hold) {
  const kept = JSON.parse(sessionStorage.getItem(newsKey) ?? "{}")
  sessionStorage.removeItem(newsKey)
  if (Date.now() - kept.at < newsFresh) say(kept.text)
  stream.on("open", async ({away}) => {
    await stream.showHold(hold).catch(() => {})
    if (away) await look(away)
  })
}

/** Looks what has become of the hold in the meantime. @param {number} away ms */
async function look(away) {
  const answer = await fetch("/v1/holds/" + hold)
  if (!answer.ok) return
  const {status} = await answer.json()
  if (status === "open") return
  if (status === "released" && away > graceOfHolds) sessionStorage.setItem(againKey, hold)
  location.reload()
}

// Seats that were given back because their page had gone are asked for again, once.
if (ended && sessionStorage.getItem(againKey) === ended) {
  sessionStorage.removeItem(againKey)
  const title = /** @type {HTMLElement} */ (document.querySelector("h1"))
  title.textContent = "While you were away your seats were given back."
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[action$='/holds']"))
  const gone = document.querySelector("[data-gone]")?.textContent ?? ""
  if (form) {
    say("We are asking for them again.")
    let asked = false
    const ask = () => {
      if (asked) return
      asked = true
      fill()
      sessionStorage.setItem(newsKey, JSON.stringify({at: Date.now(), text: `While you were away your seats were given back. ${gone ? gone + " The others are" : "They are"} yours again.`}))
      form.requestSubmit()
    }
    stream.on("open", ask)
    setTimeout(ask, 3000)
  }
}
