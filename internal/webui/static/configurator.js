// @ts-check
// The configurator: its sections, who is here, who edits, and the locks with which this page edits.
import {connect, StreamError} from "./seatfence.js"

/** @typedef {import("./seatfence.js").Person} Person */
/** @typedef {{category: string, type: string, amount: number}} Price  amount in minor units */

const root = /** @type {HTMLElement} */ (document.querySelector("[data-configurator]"))
const {configurator: event = "", currency, user} = root.dataset
const pages = ["details", "prices"]
const digits = new Intl.NumberFormat("en", {style: "currency", currency}).resolvedOptions().maximumFractionDigits ?? 2
const stream = connect()

/** @param {string} selector @param {ParentNode} [within] @returns {any} */
const find = (selector, within = root) => within.querySelector(selector)
const state = find("[data-state]"), news = find("[data-news]"), people = find("[data-people]"), list = find("[data-items]")

/** @param {Element} element @param {string} text */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text // so that it is spoken once
}

/** @param {Person | undefined | null} by */
const named = by => (!by ? "Someone" : by.own_other_tab || by.user === user ? "You, in another tab," : by.name)

/** @param {Person | undefined | null} by */
const is = by => (by && (by.own_other_tab || by.user === user) ? "are" : "is")

/** What to say of a request that failed. @param {unknown} err @returns {string} */
function told(err) {
  if (!(err instanceof StreamError)) return "That did not work. Try again in a moment."
  switch (err.code) {
    case "locked":
      return `${named(err.by)} ${is(err.by)} editing here. Take over if that has to be; they are told.`
    case "forbidden":
      return "Your role lets you look, not edit."
    case "offline":
    case "timeout":
      return "No connection at the moment. Try again when it is back."
  }
  return err.message
}

const whole = {configurator: event}
const wholeMine = () => stream.fence(whole) !== undefined

// Sections.

/** @type {Map<string, Section>} */
const sections = new Map()

/** A section, its form, and what of it is not saved yet. */
class Section {
  /** @type {{name: string, [member: string]: any}} */
  details = {name: ""}
  /** @type {Price[]} */
  prices = []
  lost = false // the lock went while something was not saved
  busy = false

  /** @param {string} item */
  constructor(item) {
    this.item = item
    this.key = `seatfence draft ${event}/${item}`
    this.form = find("template", document).content.firstElementChild.cloneNode(true)
    list.append(this.form)
    this.form.addEventListener("submit", (/** @type {Event} */ e) => {
      e.preventDefault()
      this.save()
    })
    this.form.addEventListener("input", () => {
      sessionStorage.setItem(this.key, JSON.stringify(this.values()))
      stream.activity(event)
      this.render()
    })
    const on = (/** @type {string} */ name, /** @type {() => void} */ f) => find(`[data-do=${name}]`, this.form).addEventListener("click", f)
    on("edit", () => this.lock())
    on("take", () => this.lock({takeOver: true}))
    on("done", () => this.done())
    on("undo", () => this.undo())
    on("copy", () => this.copy())
  }

  target(page = "") { return {configurator: event, item: this.item, page} }

  get mine() { return wholeMine() || pages.every(page => stream.fence(this.target(page)) !== undefined) }

  /** The fields as they are. */
  values() { return [...this.form.querySelectorAll("input")].map(input => input.value) }

  /** The fields as the server's content would have them. */
  saved() { return [this.details.name, ...this.prices.map(p => (p.amount / 10 ** digits).toFixed(digits))] }

  get dirty() { return this.values().join("\n") !== this.saved().join("\n") }

  /** @param {{details: any, prices: {prices: Price[]}}} content of the server */
  show({details, prices}) {
    const first = !this.details.name
    const values = first ? JSON.parse(sessionStorage.getItem(this.key) ?? "null") : this.values()
    const keep = first ? !!values : this.dirty
    const old = this.saved().join("\n")
    this.details = details
    this.prices = prices.prices
    this.draw()
    this.fill(keep && values.length === this.saved().length ? values : this.saved())
    this.lost = keep && this.dirty && !this.mine
    if (keep && !first && this.dirty && old !== this.saved().join("\n")) {
      this.say(`Saved meanwhile: ${this.saved().join(", ")}. Your changes are still here; saving them replaces that.`)
    }
    this.render()
  }

  /** Makes a field for each price. */
  draw() {
    write(find("h3", this.form), this.details.name)
    const types = new Set([...sections.values()].flatMap(s => s.prices.map(p => p.type)))
    const fields = find("[data-prices]", this.form)
    fields.replaceChildren(...this.prices.map(p => {
      const line = document.createElement("p"), label = document.createElement("label"), input = document.createElement("input")
      input.id = `price-${this.item}-${p.category}-${p.type}`
      input.inputMode = "decimal"
      input.required = true
      input.pattern = digits ? `[0-9]+([.,][0-9]{1,${digits}})?` : "[0-9]+"
      input.autocomplete = "off"
      label.htmlFor = input.id
      label.textContent = `${p.category}${types.size > 1 ? ", " + p.type : ""}, ${currency}`
      line.append(label, input)
      return line
    }))
    const name = find("[name=name]", this.form)
    name.id = "name-" + this.item
    find("label", this.form).htmlFor = name.id
  }

  /** @param {string[]} values */
  fill(values) { this.form.querySelectorAll("input").forEach((/** @type {HTMLInputElement} */ input, /** @type {number} */ i) => (input.value = values[i])) }

  /** @param {string} text */
  say(text) { write(find("[data-say]", this.form), text) }

  /** Who else has a lock that excludes this section's. */
  get other() {
    if (this.mine) return undefined
    return view.lockedBy ?? view.locks.find(l => l.item === this.item && pages.includes(l.page) && stream.fence(this.target(l.page)) === undefined)?.by
  }

  render() {
    const {mine, other, dirty} = this
    const detached = view.locks.some(l => l.state === "detached" && l.item === this.item)
    for (const input of this.form.querySelectorAll("input")) input.readOnly = !mine && !this.lost
    write(find("[data-who]", this.form), mine ? (wholeMine() ? "" : "You are editing this section.")
      : view.lockedBy || !other ? ""
      : detached ? `${named(other)} ${is(other)} not connected any more. If they do not come back, you can edit in a few seconds.`
      : `${named(other)} ${is(other)} editing this section. You can look; you'll be able to edit the moment they are done.`)
    show(this.form, {
      edit: !mine && !other && view.canEdit, take: !mine && !!other && !view.lockedBy,
      save: mine, done: mine && !wholeMine(), undo: dirty, copy: this.lost && dirty,
    })
    this.form.classList.toggle("editing", mine)
  }

  /** @param {{takeOver?: boolean}} [how] */
  async lock(how) {
    if (this.busy) return
    this.busy = true
    this.say("Asking…")
    try {
      for (const page of pages) await stream.lock(this.target(page), how)
      this.say("")
      await load() // only after the fence: nobody else saves any more
      if (this.mine) this.lost = false // it may have been taken over meanwhile
      find("input", this.form).focus()
    } catch (err) {
      await this.release()
      this.say(told(err))
    }
    this.busy = false
    renderAll()
  }

  release() { return Promise.allSettled(pages.filter(page => stream.fence(this.target(page)) !== undefined).map(page => stream.unlock(this.target(page)))) }

  /** Sends what has changed. @returns {Promise<boolean>} whether all is saved */
  async save() {
    if (!this.mine || !this.form.reportValidity()) return false
    const [name, ...amounts] = this.values()
    const prices = this.prices.map((p, i) => ({...p, amount: Math.round(Number(amounts[i].replace(",", ".")) * 10 ** digits)}))
    const details = {...this.details, name: name.trim()}
    this.say("Saving…")
    try {
      if (details.name !== this.details.name) {
        await this.put("details", details)
        this.details = details
      }
      if (JSON.stringify(prices) !== JSON.stringify(this.prices)) {
        await this.put("prices", {prices})
        this.prices = prices
      }
    } catch (err) {
      if (err instanceof Problem && err.code === "lock_lost") await this.gone()
      else this.say(err instanceof Problem ? err.message : "No connection at the moment. Your changes are still here; save them when it is back.")
      renderAll()
      return false
    }
    this.fill(this.saved())
    this.settle("Saved.")
    return true
  }

  /** @param {string} page @param {any} body */
  async put(page, body) {
    const fence = stream.fence(this.target(page)) ?? stream.fence(whole)
    const answer = await fetch(`/v1/events/${event}/draft/${this.item}/${page}`, {
      method: "PUT", headers: {"Content-Type": "application/json", "Edit-Fence": String(fence)}, body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})))
  }

  /** A save was refused: somebody else has been given the right to edit. What is written stays. */
  async gone() {
    if (wholeMine()) await stream.unlock(whole).catch(() => {})
    await this.release()
    this.lose(this.other)
  }

  /** @param {Person | undefined} by @param {string} [why] */
  lose(by, why) {
    this.lost = this.dirty
    const first = why === "idle" ? "Nothing was changed for a while, so others can edit again."
      : why === "withdrawn" ? "You may not edit here any more."
      : by ? `${named(by)} took over.` : "The lock of this section is gone."
    this.say(first + (this.lost ? " Your changes are kept here; compare and copy what you need." : ""))
  }

  async done() {
    if (this.dirty && !(await this.save())) return
    await this.release()
    this.say("")
    renderAll()
    find("[data-do=edit]", this.form).focus()
  }

  undo() {
    this.fill(this.saved())
    this.settle("")
  }

  /** @param {string} text */
  settle(text) {
    this.lost = false
    sessionStorage.removeItem(this.key)
    write(find("h3", this.form), this.details.name)
    this.say(text)
    this.render()
  }

  async copy() {
    const text = [...this.form.querySelectorAll("input")].map(i => `${find(`label[for='${CSS.escape(i.id)}']`, this.form).textContent}: ${i.value}`).join("\n")
    try {
      await navigator.clipboard.writeText(text)
      this.say("Copied.")
    } catch {
      this.say(text) // the clipboard is closed to pages without TLS
    }
  }
}

/** An answer of the API that is a refusal. */
class Problem extends Error {
  /** @param {{code?: string, title?: string, detail?: string}} problem */
  constructor({code, title, detail}) {
    super(detail ?? title ?? "That did not work. Try again in a moment.")
    this.code = code
  }
}

/** @param {ParentNode} within @param {Record<string, boolean>} which */
function show(within, which) {
  for (const [name, is] of Object.entries(which)) find(`[data-do=${name}]`, within).hidden = !is
}

let loading = Promise.resolve()

/** Reads the draft and shows it; what was written and not saved stays. */
function load() {
  return (loading = loading.catch(() => {}).then(async () => {
    const answer = await fetch(`/v1/events/${event}/draft`)
    if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})))
    const draft = await answer.json()
    const left = new Set(sections.keys())
    for (const content of draft.items) {
      const item = String(content.item)
      left.delete(item)
      const section = sections.get(item) ?? new Section(item)
      sections.set(item, section)
      section.show(content)
    }
    for (const item of left) {
      sections.get(item)?.form.remove()
      sections.delete(item)
    }
  }))
}

function loadNow() {
  load().then(renderAll).catch(err => write(news, err instanceof Problem ? err.message : "The sections cannot be read at the moment. Load the page again."))
}

// The whole, and who is here.

const view = stream.viewConfigurator(event, renderAll)

function renderAll() {
  people.replaceChildren(...view.viewers.map(v => {
    const line = document.createElement("li")
    line.textContent = (v.user === user ? v.name + " (you)" : v.name) + (v.isEditing ? ", editing" : "")
    return line
  }))
  const mine = wholeMine(), by = view.lockedBy
  const parts = view.locks.some(l => l.page && stream.fence({configurator: event, item: l.item, page: l.page}) === undefined)
  const own = [...sections.values()].some(s => s.mine)
  if (stream.connected && view.epoch) {
    write(state, mine ? "You are editing everything."
      : by ? `${named(by)} ${is(by)} editing everything. You can look; you'll be able to edit the moment they are done.`
      : !view.canEdit ? "You can look. Editing is for owners and editors."
      : parts ? "Somebody is editing a section. You can edit the others."
      : own ? "You are editing a section. Colleagues can edit the others."
      : "Everything can be edited: choose a section, or take all of it.")
  }
  show(find("[data-whole]"), {"edit-all": !mine && !by && !parts && !own && view.canEdit, "take-all": !mine && !own && (!!by || (parts && view.canEdit)), "done-all": mine && !taking})
  for (const section of sections.values()) section.render()
}

let taking = false // what is edited is not loaded yet

/** @param {{takeOver?: boolean}} [how] */
async function lockAll(how) {
  write(news, "")
  taking = true
  try {
    await stream.lock(whole, how)
    await load()
    for (const section of sections.values()) section.lost = false
  } catch (err) {
    write(news, err instanceof Problem ? err.message : told(err))
  }
  taking = false
  renderAll()
}

async function doneAll() {
  for (const section of sections.values()) if (section.dirty && !(await section.save())) return
  await stream.unlock(whole).catch(() => {})
  renderAll()
}

find("[data-do=edit-all]").addEventListener("click", () => lockAll())
find("[data-do=take-all]").addEventListener("click", () => lockAll({takeOver: true}))
find("[data-do=done-all]").addEventListener("click", doneAll)
find("[data-do=stay]").addEventListener("click", () => {
  stream.activity(event)
  find("[data-idle]").hidden = true
})
find("[data-leave]").addEventListener("click", () => {
  if (![...sections.values()].some(s => s.dirty)) stream.bye()
})
root.addEventListener("input", () => (find("[data-idle]").hidden = true))

stream.on("idle-warning", ({seconds}) => {
  write(find("[data-idle] p"), `You have not changed anything for a while. In ${Math.round(seconds / 60)} minutes others can edit.`)
  find("[data-idle]").hidden = false
})
stream.on("lock-lost", async ({item = "", page = "", why, by}) => {
  find("[data-idle]").hidden = true
  if (!page) {
    write(news, by ? `${named(by)} took over.` : "You are not editing everything any more.")
    for (const section of sections.values()) if (section.dirty) section.lose(by, why)
  } else {
    const section = sections.get(item)
    section?.lose(by, why)
    await section?.release() // both pages of a section, or none
  }
  renderAll()
})
stream.on("lock-kept", loadNow) // it may have been somebody else's in between
stream.on("saved", loadNow)
stream.on("open", loadNow) // what was saved meanwhile is not told
stream.on("down", () => write(state, "No connection. You can go on writing; saving works when it is back."))
stream.on("end", ({code}) => write(state, code === 4401 ? "You are signed out. Sign in again in another tab, then load this page."
  : "This page is not connected any more. Load it again to go on."))
