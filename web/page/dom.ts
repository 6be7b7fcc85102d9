/** The few lines that stand between this page and the DOM. */

/** An element of index.html. */
export function byId(id: string): HTMLElement {
  return byKind(id, HTMLElement);
}

/** The same, where it matters which kind it is. */
export function byKind<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`index.html has no ${kind.name} ${id}`);
  }
  return found;
}

/** A new element with a class and what is in it. Text is only ever text. */
export function make(tag: string, className: string, ...children: (string | Node)[]): HTMLElement {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

/** Calls `listener` at each press. */
export function onPress(id: string, listener: () => void): void {
  byId(id).addEventListener("click", listener);
}

/** Scrolls down to what is new, unless the reader has scrolled up to something older. */
export function appendFollowing(list: HTMLElement, item: HTMLElement): void {
  const reads = list.scrollHeight - list.scrollTop - list.clientHeight > NEAR_PX;
  list.append(item);
  if (!reads) {
    list.scrollTop = list.scrollHeight;
  }
}

const NEAR_PX = 80;

/** Says it to those who don't see the page. */
export function announce(text: string): void {
  byId("announcer").textContent = text;
}
