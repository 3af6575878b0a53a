/**
 * Data that the page stores between visits: sizes, colours, the path to the traces. Private windows and local files
 * may forbid it.
 */

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
    // The page starts with its defaults then.
  }
}

export function forget(name: string): void {
  try {
    localStorage.removeItem(`chartpilot.${name}`);
  } catch {
    // Nothing was stored.
  }
}
