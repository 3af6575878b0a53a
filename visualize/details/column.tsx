import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface ColumnProps {
  /** Name for screen readers while the column is a tab stop. */
  readonly label: string;
  readonly part?: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A column that scrolls and contains no tab stop becomes one. */
export function Column({ label, part, class: className = '', children }: ColumnProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const [isTabStop, setStop] = useState(false);
  const updateTabStop = (): void => {
    const column = element.current;
    // The observer may report a size after the column was removed.
    if (column === null) return;
    const isScrollable = column.scrollHeight > column.clientHeight || column.scrollWidth > column.clientWidth;
    setStop(isScrollable && column.querySelector('button:not(:disabled), summary, [tabindex="0"]') === null);
  };
  useLayoutEffect(updateTabStop);
  useEffect(() => {
    const observer = new ResizeObserver(updateTabStop);
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      ref={element}
      class={`column scroll ${className}`.trimEnd()}
      data-part={part}
      {...(isTabStop && { tabIndex: 0, role: 'group', 'aria-label': label })}
    >
      {children}
    </div>
  );
}
