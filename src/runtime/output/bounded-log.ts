import type { Logger } from './log.ts';

/** Maximum characters of a relayed text and of a field; a stack fits. */
export const maxLogText = 2_048;

/** Longer texts are truncated and followed by their length, so that a client cannot send an unbounded line. */
export function boundedLogger(log: Logger): Logger {
  return {
    debug: (event, fields) => log.debug(event, boundedFields(fields)),
    info: (event, fields) => log.info(event, boundedFields(fields)),
    warn: (event, fields) => log.warn(event, boundedFields(fields)),
    error: (event, fields) => log.error(event, boundedFields(fields)),
    write: ({ event, ...fields }) => log.write({ event, ...boundedFields(fields) }),
    relay: (event, level, text, fields) => log.relay(event, level, truncateText(text), boundedFields(fields)),
    scope: (name) => boundedLogger(log.scope(name)),
    ofProxy: (name) => boundedLogger(log.ofProxy(name)),
    levels: log.levels,
    enabled: (level) => log.enabled(level),
  };
}

function truncateText(text: string): string {
  return text.length <= maxLogText ? text : `${text.slice(0, maxLogText)}… (${text.length} characters)`;
}

function boundedFields(fields: object | undefined): object | undefined {
  if (fields === undefined) return undefined;
  const entries = Object.entries(fields);
  if (!entries.some(([, value]) => typeof value === 'string' && value.length > maxLogText)) return fields;
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' ? truncateText(value) : value]),
  );
}
