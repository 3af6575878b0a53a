import type { Statechart, StatechartState, StatechartTransition } from '../../runtime/trace/statechart.ts';
import { type Font, textWidth } from './text-width.ts';

export type WordRole = 'name' | 'keyword' | 'event' | 'timer' | 'guard' | 'action';

export interface ChartWord {
  readonly text: string;
  readonly role: WordRole;
}

export type TextLine = readonly ChartWord[];

export const nameFont: Font = { size: 13, bold: true };
export const textFont: Font = { size: 12 };

/** The last part of the path; for the machine itself its ID. */
export function stateName(chart: Statechart, state: StatechartState): string {
  if (state.parent === undefined) return chart.id;
  const { path } = chart.states[state.parent]!;
  return path === '' ? state.path : state.path.slice(path.length + 1);
}

/** Charts omit transitions without target and action. */
export function isIgnored({ targets, actions = [] }: StatechartTransition): boolean {
  return targets.length === 0 && actions.length === 0;
}

/** Returns text such as `config.changed`, `after backoff` or `repair done`; empty for `always`. */
function triggerWords(chart: Statechart, transition: StatechartTransition): ChartWord[] {
  const { kind, on } = transition;
  if (kind === 'event') return [{ text: on === '*' ? 'any event' : on, role: 'event' }];
  if (kind === 'timer') return splitWords('timer', `after ${delayText(on)}`);
  if (kind === 'always') return [];
  const outcomeText = kind === 'done' ? 'done' : 'failed';
  if (on === '*') return splitWords('event', `any actor ${outcomeText}`);
  const isStateEvent = on === chart.id || on.startsWith(`${chart.id}.`);
  return splitWords('event', isStateEvent ? outcomeText : `${on} ${outcomeText}`);
}

/** Returns text such as `config.changed [isNews]`. */
export function transitionWords(chart: Statechart, transition: StatechartTransition): ChartWord[] {
  const trigger = triggerWords(chart, transition);
  if (transition.guard !== undefined) return [...trigger, ...splitWords('guard', `[${transition.guard}]`)];
  return trigger.length > 0 ? trigger : splitWords('guard', '[otherwise]');
}

/** Returns text such as `epoch.exited / removeEpoch`. */
export function internalWords(chart: Statechart, transition: StatechartTransition): ChartWord[] {
  return [...transitionWords(chart, transition), ...actionWords('/', transition.actions ?? [])];
}

export function entryWords({ entry = [] }: StatechartState): ChartWord[] {
  return entry.length === 0 ? [] : actionWords('entry /', entry);
}

export function exitWords({ exit = [] }: StatechartState): ChartWord[] {
  return exit.length === 0 ? [] : actionWords('exit /', exit);
}

/** `runs repair`; with the name of the logic if that differs: `runs context (buildContext)`. */
export function invokeWords({ invoke = [] }: StatechartState): ChartWord[][] {
  return invoke.map(({ id, src }) => {
    const hasSameName = src === 'in place' || normalizedName(src) === normalizedName(id);
    return [...splitWords('keyword', 'runs'), ...splitWords('event', hasSameName ? id : `${id} (${src})`)];
  });
}

/** Contains the position of the transition if others are tried first. */
export function transitionTitle(chart: Statechart, number: number): string {
  const transition = chart.transitions[number]!;
  const { source, targets, kind, on, description } = transition;
  const name = (state: number): string => chart.states[state]!.path || chart.id;
  const to = targets.length === 0 ? '' : ` → ${targets.map(name).join(' and ')}`;
  const candidateTransitions = chart.transitions.filter(
    (other) => other.source === source && other.kind === kind && other.on === on,
  );
  const evaluationOrder =
    candidateTransitions.length < 2
      ? ''
      : `\nEvaluated as number ${candidateTransitions.indexOf(transition) + 1} of ${candidateTransitions.length}.`;
  const text = internalWords(chart, transition).map((part) => part.text);
  return `${name(source)}${to}\n${text.join(' ')}${evaluationOrder}${description === undefined ? '' : `\n${description}`}`;
}

/** A single word may be wider than `maxWidth`. */
export function wrap(text: readonly ChartWord[], maxWidth: number, font: Font): TextLine[] {
  const space = textWidth(' ', font);
  const lines: ChartWord[][] = [];
  let width = 0;
  for (const part of text) {
    const wordWidth = textWidth(part.text, font);
    const lastLine = lines.at(-1);
    if (lastLine !== undefined && width + space + wordWidth <= maxWidth) {
      lastLine.push(part);
      width += space + wordWidth;
    } else {
      lines.push([part]);
      width = wordWidth;
    }
  }
  return lines;
}

export function lineWidth(line: TextLine, font: Font): number {
  return textWidth(line.map(({ text }) => text).join(' '), font);
}

export function splitWords(role: WordRole, text: string): ChartWord[] {
  return text.split(' ').map((segment) => ({ text: segment, role }));
}

function actionWords(prefix: string, actions: readonly string[]): ChartWord[] {
  return actions.length === 0 ? [] : [...splitWords('keyword', prefix), ...splitWords('action', actions.join(', '))];
}

function delayText(delay: string): string {
  return /^\d+$/.test(delay) ? `${delay} ms` : delay;
}

/** `cert-watcher` and `certWatcher` are the same name. */
function normalizedName(name: string): string {
  return name.replaceAll(/[-_ ]/g, '').toLowerCase();
}
