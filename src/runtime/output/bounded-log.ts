/** A log whose lines are bounded, whatever a client sends. */
import type { Logger } from './log.ts';

/** Characters of a relayed text and of a field: a stack fits. */
export const longestLogText = 2_048;

/** The same log; longer texts are cut and end with their length. */
export function boundedLogger(log: Logger): Logger {
  return {
    debug: (event, fields) => log.debug(event, boundedFields(fields)),
    info: (event, fields) => log.info(event, boundedFields(fields)),
    warn: (event, fields) => log.warn(event, boundedFields(fields)),
    error: (event, fields) => log.error(event, boundedFields(fields)),
    write: ({ event, ...fields }) => log.write({ event, ...boundedFields(fields) }),
    relay: (event, level, text, fields) => log.relay(event, level, bounded(text), boundedFields(fields)),
    scope: (name) => boundedLogger(log.scope(name)),
    ofProxy: (name) => boundedLogger(log.ofProxy(name)),
    levels: log.levels,
    enabled: (level) => log.enabled(level),
  };
}

function bounded(text: string): string {
  return text.length <= longestLogText ? text : `${text.slice(0, longestLogText)}… (${text.length} characters)`;
}

function boundedFields(fields: object | undefined): object | undefined {
  if (fields === undefined) return undefined;
  const entries = Object.entries(fields);
  if (!entries.some(([, value]) => typeof value === 'string' && value.length > longestLogText)) return fields;
  return Object.fromEntries(entries.map(([key, value]) => [key, typeof value === 'string' ? bounded(value) : value]));
}
