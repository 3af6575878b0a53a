export function storedValue(name: string): string | undefined {
  try {
    return localStorage.getItem(`chartpilot.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function storeValue(name: string, value: string): void {
  try {
    localStorage.setItem(`chartpilot.${name}`, value);
  } catch {
    // Storage is forbidden; the page uses its defaults.
  }
}

export function removeStoredValue(name: string): void {
  try {
    localStorage.removeItem(`chartpilot.${name}`);
  } catch {
    // Storage is forbidden.
  }
}
