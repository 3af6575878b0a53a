import { type LogEventTable, noAction } from './log-event.ts';

export const redirectionEvents = {
  'redirection.applied': {
    level: 'info',
    message: 'traffic is redirected',
    meaning: 'The rules are in place.',
    action: noAction,
  },
  'redirection.verified': {
    level: 'info',
    message: 'redirection verified with a test connection',
    meaning: 'A connection of another user arrived at the port that traffic is redirected to.',
    action: noAction,
  },
  'redirection.unchanged': {
    level: 'info',
    message: 'traffic is already redirected by the same rules',
    meaning: 'Nothing was changed.',
    action: noAction,
  },
  'redirection.restored': {
    level: 'info',
    message: 'previous rules restored',
    meaning: 'The new rules could not be applied completely; the earlier ones are in place again.',
    action: 'See the error that follows.',
  },
  'redirection.removed': {
    level: 'info',
    message: 'redirection removed',
    meaning: 'The rules in `removed` are removed.',
    action: noAction,
  },
  'redirection.absent': {
    level: 'info',
    message: 'no redirection present',
    meaning: 'Nothing was changed.',
    action: noAction,
  },
} as const satisfies LogEventTable;
