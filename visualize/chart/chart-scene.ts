import { type Countdown, remainingTimeText } from './chart-lights.ts';
import type { Picture } from './chart-picture.ts';
import type { TakenTransitions } from './chart-steps.ts';

const svgNamespace = 'http://www.w3.org/2000/svg';
const animationMs = 550;

export class ChartScene {
  readonly picture: Picture;
  readonly svg: SVGSVGElement;
  readonly #states = new Map<number, SVGGElement>();
  readonly #transitions = new Map<number, SVGGElement[]>();
  #litElements: SVGGElement[] = [];
  #takenArrows: SVGGElement[] = [];
  #chainElements: SVGGElement[] = [];
  #arrowAnimations: { drawing: Animation; dot: SVGCircleElement }[] = [];
  #countdownBars = new Map<SVGGElement, { bar: SVGRectElement; text: SVGTextElement; isOwnBar: boolean }>();

  constructor(picture: Picture) {
    this.picture = picture;
    this.svg = picture.svg.cloneNode(true) as SVGSVGElement;
    for (const state of this.svg.querySelectorAll<SVGGElement>('g.state')) {
      this.#states.set(Number(state.dataset.state), state);
    }
    for (const transition of this.svg.querySelectorAll<SVGGElement>('g[data-transition]')) {
      const number = Number(transition.dataset.transition);
      this.#transitions.set(number, [...(this.#transitions.get(number) ?? []), transition]);
    }
  }

  foldableGroups(isOpened: (number: number | undefined) => boolean): SVGGElement[] {
    return [...this.svg.querySelectorAll<SVGGElement>('g.state')].filter(
      ({ classList, dataset }) =>
        classList.contains('folded') ||
        (!classList.contains('atomic') && dataset.state !== undefined && isOpened(Number(dataset.state))),
    );
  }

  highlight(activeNumbers: Iterable<number>, takenTransitions: TakenTransitions): void {
    const states = [...activeNumbers].flatMap((number) => this.#states.get(number) ?? []);
    swapClass(this.#litElements, states, 'active');
    this.#litElements = states;
    for (const transition of this.#takenArrows) transition.classList.remove('taken', 'last');
    const currentArrows = this.#arrowsOf(takenTransitions.currentNumbers);
    const lastArrows = currentArrows.length > 0 ? [] : this.#arrowsOf(takenTransitions.previousNumbers);
    for (const transition of currentArrows) transition.classList.add('taken');
    for (const transition of lastArrows) transition.classList.add('last');
    // Later elements are drawn on top.
    for (const transition of [...lastArrows, ...currentArrows]) {
      const path = transition.closest('.way') ?? transition;
      if (transition.matches('.transition')) path.parentNode?.append(path);
    }
    this.#takenArrows = [...currentArrows, ...lastArrows];
  }

  markChain(numbers: readonly number[]): void {
    const ways = this.#arrowsOf(numbers);
    swapClass(this.#chainElements, ways, 'story');
    this.#chainElements = ways;
  }

  showCountdowns(countdowns: readonly Countdown[]): void {
    const activeCountdowns = new Map<SVGGElement, Countdown>();
    for (const countdown of countdowns) {
      for (const group of this.#arrowsOf(countdown.transitions)) activeCountdowns.set(group, countdown);
    }
    for (const [group, { bar, text, isOwnBar }] of this.#countdownBars) {
      if (activeCountdowns.has(group)) continue;
      text.remove();
      if (isOwnBar) bar.remove();
      else bar.style.transform = '';
      group.classList.remove('counting');
      this.#countdownBars.delete(group);
    }
    for (const [group, { remainingShare, remainingMs }] of activeCountdowns) {
      const counting = this.#countdownBars.get(group) ?? createCountdownBar(group);
      this.#countdownBars.set(group, counting);
      counting.bar.style.transform = `scaleX(${remainingShare.toFixed(4)})`;
      const timeText = remainingTimeText(remainingMs);
      if (counting.text.textContent !== timeText) counting.text.textContent = timeText;
    }
  }

  animate(transitions: readonly number[]): void {
    this.#stopAnimation();
    for (const group of this.#arrowsOf(transitions)) {
      const arrow = group.querySelector<SVGPathElement>('path.arrow');
      if (arrow === null) continue;
      const length = arrow.getTotalLength();
      const drawing = arrow.animate(
        [
          { strokeDasharray: `${length}`, strokeDashoffset: `${length}` },
          { strokeDasharray: `${length}`, strokeDashoffset: '0' },
        ],
        { duration: animationMs, easing: 'ease-in-out' },
      );
      const dot = document.createElementNS(svgNamespace, 'circle');
      dot.setAttribute('r', '5');
      dot.setAttribute('class', 'token');
      group.append(dot);
      animateDot(dot, arrow, length);
      this.#arrowAnimations.push({ drawing, dot });
    }
  }

  /** Removes running animations, so that only the last of several quick steps is animated. */
  #stopAnimation(): void {
    for (const { drawing, dot } of this.#arrowAnimations) {
      drawing.cancel();
      dot.remove();
    }
    this.#arrowAnimations = [];
  }

  showCounts(shareOf: ReadonlyMap<number, number>): void {
    for (const [number, state] of this.#states) {
      const timeShare = shareOf.get(number) ?? 0;
      state.classList.toggle('active', timeShare > 0);
      state.style.setProperty('--share', timeShare.toFixed(3));
    }
  }

  #arrowsOf(numbers: readonly number[]): SVGGElement[] {
    return numbers.flatMap((number) => this.#transitions.get(number) ?? []);
  }
}

function swapClass(previous: readonly Element[], next: readonly Element[], name: string): void {
  const keptElements = new Set(next);
  for (const element of previous) if (!keptElements.has(element)) element.classList.remove(name);
  for (const element of next) element.classList.add(name);
}

function createCountdownBar(group: SVGGElement): { bar: SVGRectElement; text: SVGTextElement; isOwnBar: boolean } {
  const existingBar = group.querySelector<SVGRectElement>('rect.countdown');
  const bar = existingBar ?? createTimerBar(group);
  const box = bar.getBBox();
  const text = document.createElementNS(svgNamespace, 'text');
  text.setAttribute('class', 'time-left');
  text.setAttribute('x', String(existingBar === null ? rightOfState(group) : box.x + box.width + 5));
  text.setAttribute('y', String(box.y + box.height - 4));
  group.append(text);
  group.classList.add('counting');
  return { bar, text, isOwnBar: existingBar === null };
}

function rightOfState(group: SVGGElement): number {
  const { x, width } = group.parentElement!.querySelector<SVGRectElement>('rect.box')?.getBBox() ?? group.getBBox();
  return x + width + 8;
}

/** Creates the bar of a timer without a target, because the picture has none. */
function createTimerBar(group: SVGGElement): SVGRectElement {
  const { x, y, width, height } = group.getBBox();
  const bar = document.createElementNS(svgNamespace, 'rect');
  bar.setAttribute('class', 'countdown');
  for (const [name, value] of Object.entries({ x: x - 3, y, width: width + 6, height, rx: 3 })) {
    bar.setAttribute(name, String(value));
  }
  group.prepend(bar);
  return bar;
}

function animateDot(dot: SVGCircleElement, path: SVGPathElement, length: number): void {
  const startedAt = performance.now();
  const step = (nowMs: number): void => {
    const progress = Math.min(1, Math.max(0, (nowMs - startedAt) / animationMs));
    const { x, y } = path.getPointAtLength(length * (progress * progress * (3 - 2 * progress)));
    dot.setAttribute('cx', String(x));
    dot.setAttribute('cy', String(y));
    if (progress < 1 && dot.isConnected) requestAnimationFrame(step);
    else dot.remove();
  };
  step(startedAt);
}
