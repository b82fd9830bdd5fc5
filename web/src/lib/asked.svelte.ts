// The address a reader asked for: it stands behind the # of the page's own, and the number it names lies open.
import { parseAddress } from './document';

const inUrl = (): string | null => {
  try {
    const text = decodeURIComponent(location.hash.slice(1));
    return parseAddress(text) && text;
  } catch {
    return null;
  }
};

class Asked {
  address = $state<string | null>(inUrl());
  #opener: HTMLElement | null = null;

  constructor() {
    addEventListener('popstate', () => (this.address = inUrl()));
  }

  open(address: string): void {
    if (this.address === null) this.#opener = document.activeElement as HTMLElement | null;
    history.pushState(null, '', `#${address}`);
    this.address = address;
  }

  /** The chosen cell's address goes along; what lies open follows it. */
  follow(address: string): void {
    if (!parseAddress(address)) return;
    history.replaceState(null, '', `#${address}`);
    if (this.address !== null) this.address = address;
  }

  close(): void {
    this.address = null;
    if (this.#opener?.isConnected) this.#opener.focus();
    this.#opener = null;
  }
}

export const asked = new Asked();
