export function actorText(actor: string): string {
  return actor.replace(/-(\d)/, ' $1');
}

/** Formats a duration: `0 s`, `85 ms`, `12.3 s`, `2 min 05 s`, `3 h 12 min`. */
export function durationText(ms: number): string {
  if (ms < 0.5) return '0 s';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  const padTwoDigits = (n: number): string => String(n).padStart(2, '0');
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${padTwoDigits(seconds % 60)} s`;
  const minutes = Math.floor(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${padTwoDigits(minutes % 60)} min`;
}

/** A file of a Kubernetes volume is in a directory such as `..2026_11_29_08_10_13.1`, so the name of the volume, `certs/`, is returned instead. */
export function fileName(path: string): string {
  const names = path.split('/').filter((name) => name !== '');
  const volume = names.findIndex((name) => name.startsWith('..') && name.length > 2);
  if (volume > 0) return `${names[volume - 1]}/`;
  return names.at(-1) ?? path;
}

export function count(n: number, singular: string, plural = `${singular}s`): string {
  return `${n.toLocaleString('en')} ${n === 1 ? singular : plural}`;
}

export function text(value: unknown, maxLength = 200): string {
  const rawText = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'reason unknown');
  const line = rawText.replaceAll(/\s+/g, ' ').trim() || 'reason unknown';
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}
