import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface ColumnProps {
  /** What a screen reader calls it, where it is a stop of the Tab key. */
  readonly label: string;
  /** Its `data-part`. */
  readonly part?: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/**
 * A part of the details that scrolls. It is a stop of the Tab key as long as it scrolls and nothing in it is one: its end
 * would be out of reach of whoever has no mouse.
 */
export function Column({ label, part, class: more = '', children }: ColumnProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const [isStop, setStop] = useState(false);
  const look = (): void => {
    const column = element.current;
    // A size is told once more after the column has gone.
    if (column === null) return;
    const scrolls = column.scrollHeight > column.clientHeight || column.scrollWidth > column.clientWidth;
    setStop(scrolls && column.querySelector('button:not(:disabled), summary, [tabindex="0"]') === null);
  };
  useLayoutEffect(look);
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      ref={element}
      class={`column scroll ${more}`.trimEnd()}
      data-part={part}
      {...(isStop && { tabIndex: 0, role: 'group', 'aria-label': label })}
    >
      {children}
    </div>
  );
}
