/** A log of which no line is as long as a stranger likes. */
import type { Logger } from './log.ts';

/** Characters of a message, and of a field: stacks fit in, and what a person reads. */
export const longestLogText = 2_048;

/** The same log; texts that are longer are cut, and say how long they were. */
export function boundedLogger(log: Logger): Logger {
  return {
    debug: (message, fields) => log.debug(bounded(message), boundedFields(fields)),
    info: (message, fields) => log.info(bounded(message), boundedFields(fields)),
    warn: (message, fields) => log.warn(bounded(message), boundedFields(fields)),
    error: (message, fields) => log.error(bounded(message), boundedFields(fields)),
    scope: (name) => boundedLogger(log.scope(name)),
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
