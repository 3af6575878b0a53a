/** What the page remembers of its user between visits: sizes, colours, the way to the traces. Private windows and files may forbid it. */

export function remembered(name: string): string | undefined {
  try {
    return localStorage.getItem(`chartpilot.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`chartpilot.${name}`, value);
  } catch {
    // Then the page begins as it always does.
  }
}

export function forget(name: string): void {
  try {
    localStorage.removeItem(`chartpilot.${name}`);
  } catch {
    // There was nothing.
  }
}
