// Dark or light: as the reader's machine is, until a reader chooses.

const wished = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  dark = $state(wished.matches);
  #chosen = false;

  constructor() {
    wished.addEventListener('change', (event) => {
      if (!this.#chosen) this.set(event.matches);
    });
    this.set(this.dark);
  }

  set(dark: boolean): void {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  }

  toggle = (): void => {
    this.#chosen = true;
    this.set(!this.dark);
  };
}

export const theme = new Theme();
