const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const durationPart = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy;

/** Node's timers have at most 31 bits of milliseconds and fire immediately beyond that. Rounded down to hours. */
export const maxTimerMs = 576 * 3_600_000;

export const durationPattern = `^[-+]?(?:0|(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`;

/** RE2 pattern for a non-negative duration; matches `-0s`. */
export const notNegativePattern = '^(?:[^-].*|-[^1-9]*)$';
export const positivePattern = '[1-9]';

export function durationMsOf(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const unsignedText = text.replace(/^[+-]/, '');
  if (unsignedText === '0') return 0;
  let sumMs = 0;
  let end = 0;
  durationPart.lastIndex = 0;
  for (let match = durationPart.exec(unsignedText); match !== null; match = durationPart.exec(unsignedText)) {
    sumMs += Number(match[1]) * unitMs[match[2]!]!;
    end = durationPart.lastIndex;
  }
  // Rounds to nanoseconds, because binary fractions are inexact.
  return end > 0 && end === unsignedText.length ? (sign * Math.round(sumMs * 1e6)) / 1e6 : undefined;
}
