/** Lines of a program's log by event and fields, for tests that read the output of a program, as text or as JSON. */
import { eventDescription, type LogEventId } from '../../src/runtime/log-events/log-events.ts';

type FieldPattern = string | number | RegExp;

/**
 * A pattern of the lines of an event.
 * @param fields required fields; a pattern matches a part of the value as written
 */
export function loggedLine(event: LogEventId, fields: Readonly<Record<string, FieldPattern>> = {}): RegExp {
  return new RegExp(`^(?:${textPattern(event, fields)}|${jsonPattern(event, fields)})`);
}

/** Lines of an event in the output of a program. */
export function linesOf(
  output: readonly string[],
  event: LogEventId,
  fields: Readonly<Record<string, FieldPattern>> = {},
): string[] {
  const pattern = loggedLine(event, fields);
  return output.filter((line) => pattern.test(line));
}

function textPattern(event: LogEventId, fields: Readonly<Record<string, FieldPattern>>): string {
  const { level, message } = eventDescription(event);
  const inMessage = new Set<string>();
  const text = escapeRegExp(message).replace(/\\\{(\w+)\\\}/g, (_, name: string) => {
    inMessage.add(name);
    return fields[name] === undefined ? '.*?' : valuePattern(fields[name]);
  });
  const otherFields = Object.entries(fields).filter(([name]) => !inMessage.has(name));
  const conditions = otherFields.map(([name, value]) => `(?=.* {2}${escapeRegExp(name)}=${textValue(value)})`);
  return `[^\\t]+\\t${level}\\t[^\\t]+\\t${conditions.join('')}${text}(?: {2}|$)`;
}

function textValue(value: FieldPattern): string {
  if (value instanceof RegExp) return `(?:(?! {2}\\w[\\w.]*=).)*?(?:${value.source})`;
  const valueText = typeof value === 'string' && /[\s"=\\]/.test(value) ? JSON.stringify(value) : String(value);
  return `${escapeRegExp(valueText)}(?: {2}|$)`;
}

function jsonPattern(event: LogEventId, fields: Readonly<Record<string, FieldPattern>>): string {
  const conditions = Object.entries(fields).map(([name, value]) => {
    const key = `"${escapeRegExp(name)}":`;
    return value instanceof RegExp
      ? `(?=.*${key}"?(?:(?!","|[}\\]],").)*?(?:${value.source}))`
      : `(?=.*${key}${escapeRegExp(JSON.stringify(value))}[,}])`;
  });
  return `\\{(?=.*"event":"${escapeRegExp(event)}")${conditions.join('')}`;
}

function valuePattern(value: FieldPattern): string {
  return value instanceof RegExp ? `.*?(?:${value.source}).*?` : escapeRegExp(String(value));
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
