import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { removeStoredValue, storedValue, storeValue } from '../model/page-storage.ts';

export interface SplitterProps {
  /** CSS variable of the size, without its dashes; the style sheet has the default. */
  readonly name: string;
  readonly label: string;
  readonly axis: 'x' | 'y';
  readonly paneSide: 'before' | 'behind';
  readonly minSize: number;
  readonly maxSize: number;
}

const keyStep = 24;

/** The border can be dragged or moved with the arrow keys; a double-click resets it. */
export function Splitter(props: SplitterProps): JSX.Element {
  const { label, axis, paneSide, minSize, maxSize } = props;
  const handle = useRef<HTMLDivElement>(null);
  const size = useSignal(0);
  const sign = paneSide === 'before' ? 1 : -1;
  const measure = (): number => {
    const pane = paneSide === 'before' ? handle.current?.previousElementSibling : handle.current?.nextElementSibling;
    const { width = 0, height = 0 } = pane?.getBoundingClientRect() ?? {};
    return Math.round(axis === 'x' ? width : height);
  };
  const resize = (to: number): void => {
    applySize(props, to);
    size.value = measure();
  };
  const reset = (): void => {
    document.documentElement.style.removeProperty(`--${props.name}`);
    removeStoredValue(props.name);
    size.value = measure();
  };
  useLayoutEffect(() => {
    const storedSize = Number(storedValue(props.name));
    if (storedSize >= minSize && storedSize <= maxSize) applySize(props, storedSize);
    size.value = measure();
  }, []);
  const drag = (downEvent: PointerEvent): void => {
    const from = axis === 'x' ? downEvent.clientX : downEvent.clientY;
    const startSize = measure();
    const handle = downEvent.currentTarget as HTMLElement;
    handle.setPointerCapture(downEvent.pointerId);
    handle.onpointermove = (move) => resize(startSize + sign * ((axis === 'x' ? move.clientX : move.clientY) - from));
    handle.onpointerup = () => {
      handle.onpointermove = null;
      handle.onpointerup = null;
    };
  };
  const onKey = (event: KeyboardEvent): void => {
    const [decreaseKey, increaseKey] = axis === 'x' ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown'];
    if (event.key !== decreaseKey && event.key !== increaseKey) return;
    event.preventDefault();
    event.stopPropagation();
    resize(measure() + sign * (event.key === increaseKey ? keyStep : -keyStep));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is no <hr>
    <div
      ref={handle}
      class={`splitter ${axis}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={axis === 'x' ? 'vertical' : 'horizontal'}
      aria-valuenow={size.value}
      aria-valuemin={minSize}
      aria-valuemax={maxSize}
      onPointerDown={drag}
      onDblClick={reset}
      onKeyDown={onKey}
    />
  );
}

function applySize({ name, minSize, maxSize }: SplitterProps, to: number): void {
  const size = Math.round(Math.min(Math.max(to, minSize), maxSize));
  document.documentElement.style.setProperty(`--${name}`, `${size}px`);
  storeValue(name, String(size));
}
