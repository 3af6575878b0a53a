/** Formats a statechart as a mermaid `stateDiagram-v2`, for issues, wikis and READMEs. */
import type { Statechart, StatechartTransition } from '../../runtime/trace/statechart.ts';
import {
  type ChartWord,
  entryWords,
  exitWords,
  internalWords,
  invokeWords,
  isIgnored,
  stateName,
  transitionWords,
} from './chart-text.ts';
import { ancestorsOf } from './connections.ts';

/** Ignored events are omitted. */
export function formatMermaid(chart: Statechart): string {
  const lines = ['stateDiagram-v2', ...bodyOf(chart, 0, '  ')];
  return `${lines.join('\n')}\n`;
}

/** Mermaid requires each arrow in the state that contains both its ends. */
function bodyOf(chart: Statechart, number: number, indent: string): string[] {
  const { type, initial } = chart.states[number]!;
  const children = numbersOf(chart.states, ({ parent }) => parent === number);
  const regions = children.map((child) => declaration(chart, child, indent));
  return [
    ...(initial === undefined || type !== 'compound' ? [] : [`${indent}[*] --> ${idOf(chart, initial)}`]),
    ...(type === 'parallel'
      ? regions.flatMap((lines, index) => (index === 0 ? lines : [`${indent}--`, ...lines]))
      : regions.flat()),
    ...(leadsInside(chart, number)
      ? [
          `${indent}state "anywhere in ${escapeText(stateName(chart, chart.states[number]!))}" as ${anyStatePlaceholder(chart, number)}`,
        ]
      : []),
    ...chart.transitions.flatMap((transition) => arrowsIn(chart, number, transition, indent)),
  ];
}

function declaration(chart: Statechart, number: number, indent: string): string[] {
  const state = chart.states[number]!;
  const id = idOf(chart, number);
  const name = `state "${escapeText(stateName(chart, state))}" as ${id}`;
  const isParent = chart.states.some(({ parent }) => parent === number);
  return [
    ...(isParent
      ? [`${indent}${name} {`, ...bodyOf(chart, number, `${indent}  `), `${indent}}`]
      : [`${indent}${name}`]),
    ...(state.type === 'final' ? [`${indent}${id} --> [*]`] : []),
    ...noteOf(chart, number, indent),
  ];
}

function noteOf(chart: Statechart, number: number, indent: string): string[] {
  const state = chart.states[number]!;
  const innerTransitions = chart.transitions.filter(
    (transition) => transition.source === number && transition.targets.length === 0 && !isIgnored(transition),
  );
  const rows = [
    ...invokeWords(state),
    entryWords(state),
    exitWords(state),
    ...innerTransitions.map((transition) => internalWords(chart, transition)),
  ].filter((lineWords) => lineWords.length > 0);
  const text = [...(state.description === undefined ? [] : [state.description]), ...rows.map(sentence)];
  if (text.length === 0) return [];
  return [
    `${indent}note right of ${idOf(chart, number)}`,
    ...text.map((line) => `${indent}  ${escapeText(line)}`),
    `${indent}end note`,
  ];
}

function arrowsIn(chart: Statechart, number: number, transition: StatechartTransition, indent: string): string[] {
  const { source, targets } = transition;
  return targets
    .filter((target) => innermostCommonState(chart, source, target) === number)
    .map((target) => {
      const actions = transition.actions === undefined ? '' : ` / ${transition.actions.join(', ')}`;
      const label = escapeText(sentence(transitionWords(chart, transition)) + actions);
      const from = source === number ? anyStatePlaceholder(chart, source) : idOf(chart, source);
      return `${indent}${from} --> ${idOf(chart, target)} : ${label}`;
    });
}

/** Returns the source if it contains the target. */
function innermostCommonState(chart: Statechart, source: number, target: number): number {
  const targetAncestors = ancestorsOf(chart, target);
  return [source, ...ancestorsOf(chart, source)].find((state) => targetAncestors.includes(state)) ?? 0;
}

/** Mermaid draws no arrow from a state to a descendant, so such arrows get a separate source inside the state. */
function leadsInside(chart: Statechart, number: number): boolean {
  return chart.transitions.some(
    ({ source, targets }) =>
      source === number && targets.some((target) => innermostCommonState(chart, source, target) === number),
  );
}

function anyStatePlaceholder(chart: Statechart, number: number): string {
  return `${idOf(chart, number)}_anywhere`;
}

/** Mermaid's IDs consist of word characters. The number makes the ID unique. */
function idOf(chart: Statechart, number: number): string {
  const { path } = chart.states[number]!;
  return `s${number}_${(path || chart.id).replaceAll(/\W+/g, '_')}`;
}

function sentence(sentenceWords: readonly ChartWord[]): string {
  return sentenceWords.map(({ text }) => text).join(' ');
}

const codes: Readonly<Record<string, string>> = {
  '#': '#35;',
  ';': '#59;',
  ':': '#58;',
  '"': '#quot;',
  '<': '#lt;',
  '>': '#gt;',
  '{': '#123;',
  '}': '#125;',
  '%': '#37;',
};

function escapeText(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[#;:"<>{}%]/g, (character) => codes[character]!);
}

function numbersOf<Item>(items: readonly Item[], isIncluded: (item: Item) => boolean): number[] {
  return items.flatMap((item, number) => (isIncluded(item) ? [number] : []));
}
