/**
 * A relay in memory: one session of `sovereign.signal.v1` with its two mailboxes, as the contract has it. Of the limits
 * it announces it enforces the length of frames, in both directions. Tests cut its connections, refuse dials, and put a hostile hand between mailbox and wire.
 */
import { LIMITS, type Frame } from "./bench.js";

/** The relay's end of a connection. */
export interface Line {
  send(text: string): void;
  close(code: number): void;
}

type SlotName = "a" | "b";
interface Stored {
  readonly seq: number;
  readonly frame: Frame;
}

class Slot {
  line: Line | undefined;
  cid = "";
  retired = new Set<string>();
  gen = 0;
  try = 0;
  next = 1;
  refusing = false;
  state = "absent";
  mailbox: Stored[] = [];
  base = 0;
  lastSeq = 0;
  /** Every frame that came from this side. */
  heard: Frame[] = [];
}

export class RelayDouble {
  readonly slots = { a: new Slot(), b: new Slot() };
  iceServers: unknown[] = [];
  limits = LIMITS;
  /** Refuses this many messages before it stores the next. */
  refuseNext = 0;
  /** Cuts the connection after storing, before the acknowledgement. */
  cutBeforeAck: (slot: SlotName) => boolean = () => false;
  /** Between mailbox and wire: what is sent in place of a message to this side. */
  tamper: (to: SlotName, frame: Frame) => Frame[] = (_, frame) => [frame];
  /** All that the relay was told, as text. */
  seen: string[] = [];

  /** A socket opened. */
  connect(line: Line): { message(text: string): void; closed(): void } {
    let at: SlotName | undefined;
    return {
      message: (text) => {
        this.seen.push(text);
        const frame = JSON.parse(text) as Frame;
        if (at === undefined) {
          at = this.#hello(line, frame);
        } else if (this.slots[at].line === line) {
          this.#frame(at, frame);
        }
      },
      closed: () => {
        if (at !== undefined && this.slots[at].line === line) {
          this.slots[at].line = undefined;
          this.#presence(at, this.slots[at].state === "left" ? "left" : "away");
        }
      },
    };
  }

  /** The connection of this side breaks: both ends see 1006. */
  cut(slot: SlotName, code = 1006): void {
    const { line } = this.slots[slot];
    this.slots[slot].line = undefined;
    line?.close(code);
  }

  /** Says something out of turn. */
  say(to: SlotName, frame: Frame): void {
    this.#say(this.slots[to], frame);
  }

  /** The session is over. */
  end(): void {
    this.cut("a", 4410);
    this.cut("b", 4410);
  }

  #hello(line: Line, frame: Frame): SlotName | undefined {
    const name = frame["ticket"] === "ticket-a" ? "a" : frame["ticket"] === "ticket-b" ? "b" : undefined;
    if (name === undefined || frame.t !== "hello") {
      line.close(name === undefined ? 4401 : 4400);
      return undefined;
    }
    const slot = this.slots[name];
    const { cid, last } = frame as unknown as { cid: string; last: number };
    const resumed = cid === slot.cid;
    if (slot.retired.has(cid) || (resumed && (frame["try"] as number) <= slot.try)) {
      line.close(4409);
      return undefined;
    }
    slot.line?.close(4409);
    slot.line = line;
    slot.try = frame["try"] as number;
    slot.refusing = false;
    this.#trim(slot, last);
    this.#welcome(name, resumed || this.#arrive(name, cid), Math.max(last, slot.base));
    return name;
  }

  #arrive(name: SlotName, cid: string): false {
    const slot = this.slots[name];
    if (slot.cid !== "") {
      slot.retired.add(slot.cid);
    }
    Object.assign(slot, { cid, gen: slot.gen + 1, next: 1 });
    return false;
  }

  #welcome(name: SlotName, resumed: boolean, from: number): void {
    const [slot, peer] = [this.slots[name], this.slots[other(name)]];
    this.#say(slot, {
      t: "welcome",
      slot: name,
      role: name === "a" ? "impolite" : "polite",
      gen: slot.gen,
      next: slot.next,
      base: slot.base,
      peer: { state: peer.state, gen: peer.gen },
      expiresAt: "2030-01-01T00:00:00Z",
      graceSeconds: 30,
      heartbeatSeconds: 25,
      limits: this.limits,
      iceServers: this.iceServers,
    });
    slot.state = "online";
    if (!resumed && slot.gen > 1) {
      this.#store(other(name), { t: "peer", state: "online", gen: slot.gen });
    } else {
      this.#presence(name, "online");
    }
    for (const { frame } of slot.mailbox.filter(({ seq }) => seq > from)) {
      this.#deliver(name, frame);
    }
  }

  #frame(name: SlotName, frame: Frame): void {
    const slot = this.slots[name];
    slot.heard.push(frame);
    const delivered = { t: "msg", seq: slot.next, gen: slot.gen, d: frame["d"] };
    if ([frame, delivered].some((either) => Buffer.byteLength(JSON.stringify(either)) > this.limits.frameBytes)) {
      this.cut(name, 1009);
      return;
    }
    switch (frame.t) {
      case "msg":
        this.#message(name, frame["n"] as number, frame["d"] as string);
        break;
      case "ack":
        this.#trim(slot, frame["seq"] as number);
        break;
      case "ping":
        this.#say(slot, { t: "pong" });
        break;
      case "ice":
        this.#say(slot, { t: "ice", iceServers: this.iceServers, expiresAt: "2030-01-01T00:00:00Z" });
        break;
      case "bye":
        this.#presence(name, "left");
        break;
      default:
        this.cut(name, 4400);
    }
  }

  #message(name: SlotName, n: number, d: string): void {
    const slot = this.slots[name];
    if (n > slot.next) {
      if (!slot.refusing) {
        this.cut(name, 4500);
      }
      return;
    }
    if (n === slot.next) {
      if (this.refuseNext > 0) {
        this.refuseNext -= 1;
        slot.refusing = true;
        this.#say(slot, { t: "err", code: "rate_limited", n, retryMs: 800 });
        return;
      }
      slot.refusing = false;
      slot.next += 1;
      this.#store(other(name), { t: "msg", gen: slot.gen, d });
      if (this.cutBeforeAck(name)) {
        this.cut(name);
        return;
      }
    }
    this.#say(slot, { t: "ack", n });
  }

  #store(name: SlotName, frame: Frame): void {
    const slot = this.slots[name];
    slot.lastSeq += 1;
    const stored = { seq: slot.lastSeq, frame: { ...frame, seq: slot.lastSeq } };
    slot.mailbox.push(stored);
    this.#deliver(name, stored.frame);
  }

  #deliver(name: SlotName, frame: Frame): void {
    for (const tampered of this.tamper(name, frame)) {
      this.#say(this.slots[name], tampered);
    }
  }

  #trim(slot: Slot, seq: number): void {
    slot.mailbox = slot.mailbox.filter((stored) => stored.seq > seq);
    slot.base = Math.max(slot.base, seq);
  }

  #presence(name: SlotName, state: string): void {
    this.slots[name].state = state;
    this.#say(this.slots[other(name)], { t: "peer", state, gen: this.slots[name].gen });
  }

  #say(slot: Slot, frame: Frame): void {
    slot.line?.send(JSON.stringify(frame));
  }
}

function other(name: SlotName): SlotName {
  return name === "a" ? "b" : "a";
}
