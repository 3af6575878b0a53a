/** Access to the states of a chart by keyboard and screen reader. */
import { useSignalEffect } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { definitionOf, shownSnapshot } from './chart-current.ts';
import { activeStates } from './chart-lights.ts';
import type { ChartScene } from './chart-scene.ts';

export function useNamedStates({ svg }: ChartScene, machine: string): void {
  useLayoutEffect(() => {
    svg.setAttribute('role', 'group');
    for (const state of statesOf(svg)) {
      state.setAttribute('role', 'img');
      state.setAttribute('tabindex', '-1');
    }
  }, [svg]);
  useSignalEffect(() => {
    const chart = definitionOf(machine);
    if (chart === undefined) return;
    const activeNumbers = new Set(activeStates(chart, shownSnapshot.value?.state ?? ''));
    for (const state of statesOf(svg)) {
      const isActive = activeNumbers.has(Number(state.dataset.state));
      const [title = '', ...description] = (state.querySelector(':scope > title')?.textContent ?? '').split('\n');
      const path = state.dataset.path || machine;
      const name = isFoldable(state) ? `${actionText(state)} ${path}, ${textOf(state)}` : title;
      const label = [isActive ? `${name}, active` : name, description.join(' ')].filter(Boolean).join(': ');
      if (state.getAttribute('aria-label') !== label) state.setAttribute('aria-label', label);
    }
  });
}

/** Moves between states with the up and down keys; returns whether it handled the key. */
export function goToState(viewport: HTMLElement, key: string): boolean {
  if (key !== 'ArrowUp' && key !== 'ArrowDown') return false;
  const states = statesOf(viewport);
  const focusedIndex = states.indexOf(document.activeElement as SVGGElement);
  const nextState =
    focusedIndex === -1 && key === 'ArrowUp' ? states.length - 1 : focusedIndex + (key === 'ArrowUp' ? -1 : 1);
  const state = states[nextState];
  state?.focus({ preventScroll: true });
  state?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  return true;
}

function isFoldable(state: SVGGElement): boolean {
  return state.classList.contains('foldable');
}

function actionText(state: SVGGElement): string {
  return state.getAttribute('aria-expanded') === 'true' ? 'Fold' : 'Open';
}

/** Contains the visible text, so that voice control can find the state. */
function textOf(state: SVGGElement): string {
  return [...state.querySelectorAll('text')].map((text) => text.textContent).join(' ');
}

function statesOf(root: Element): SVGGElement[] {
  return [...root.querySelectorAll<SVGGElement>('g.state')];
}
