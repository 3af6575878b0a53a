/** An ID appears in one table only; `test/log-events.test.ts` checks this and that each is used. */
import { adsEvents } from './ads-events.ts';
import { agentEvents } from './agent-events.ts';
import { agentServerEvents } from './agent-server-events.ts';
import { authorityEvents } from './authority-events.ts';
import { consulEvents } from './consul-events.ts';
import { discoveryEvents } from './discovery-events.ts';
import { kubernetesEvents } from './kubernetes-events.ts';
import type { EventLevel, LogEvent } from './log-event.ts';
import { optionEvents } from './option-events.ts';
import { programEvents } from './program-events.ts';
import { redirectionEvents } from './redirection-events.ts';
import { webhookEvents } from './webhook-events.ts';

export type { EventLevel } from './log-event.ts';

const logEvents = {
  ...programEvents,
  ...optionEvents,
  ...agentEvents,
  ...agentServerEvents,
  ...discoveryEvents,
  ...kubernetesEvents,
  ...consulEvents,
  ...adsEvents,
  ...authorityEvents,
  ...redirectionEvents,
  ...webhookEvents,
};

type LogEvents = typeof logEvents;

export type LogEventId = keyof LogEvents;

export type EventOfLevel<Level extends LogEvent['level']> = {
  [Id in LogEventId]: LogEvents[Id]['level'] extends Level ? Id : never;
}[LogEventId];

type LeveledEvent = EventOfLevel<EventLevel>;

/** An event with its fields, for a line that is built in one component and logged in another. */
export interface LogEntry<Id extends LeveledEvent = LeveledEvent> {
  readonly event: Id;
  readonly [field: string]: unknown;
}

export type LogWarning = LogEntry<EventOfLevel<'warn'>>;

export function eventDescription(event: LogEventId): LogEvent {
  return logEvents[event];
}

export function isLeveledEvent(type: string): type is LeveledEvent {
  return Object.hasOwn(logEvents, type) && logEvents[type as LogEventId].level !== 'relayed';
}

export function levelOfEvent(event: LeveledEvent): EventLevel {
  return logEvents[event].level;
}

const placeholder = /\{(\w+)\}/g;

export function messageText(event: LogEventId, fields: object): string {
  const { message } = logEvents[event];
  if (!message.includes('{')) return message;
  return message.replace(placeholder, (_, name: string) => String((fields as Record<string, unknown>)[name] ?? ''));
}

export function fieldsOutsideMessage(event: LogEventId, fields: object): object {
  const { message } = logEvents[event];
  if (!message.includes('{')) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !message.includes(`{${name}}`)));
}
