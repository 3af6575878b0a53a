import type { JSX } from 'preact';

/** Outlines on a grid of 16 × 16. */
const paths = {
  play: 'M4.5 2.8v10.4L13 8z',
  pause: 'M5 3v10M11 3v10',
  first: 'M3.5 3v10M12.5 3.5 7 8l5.5 4.5z',
  back: 'M10.5 3.5 5 8l5.5 4.5',
  forward: 'M5.5 3.5 11 8l-5.5 4.5',
  last: 'M12.5 3v10M3.5 3.5 9 8l-5.5 4.5z',
  nearer: 'M7 3.5v7M3.5 7h7M10.5 10.5 14 14M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10z',
  farther: 'M3.5 7h7M10.5 10.5 14 14M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10z',
  fit: 'M2 3v10M14 3v10M4.5 8h7M6.5 6l-2 2 2 2M9.5 6l2 2-2 2',
  search: 'M10.5 10.5 14 14M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10z',
  light:
    'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M3.2 12.8l1.1-1.1M11.7 4.3l1.1-1.1',
  dark: 'M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1z',
  system: 'M2 3.5h12v7.5H2zM5.5 13.5h5M8 11v2.5',
  help: 'M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4zM6.2 6.2a1.9 1.9 0 1 1 2.6 1.9c-.5.2-.8.6-.8 1.1v.3M8 11.6v.1',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  larger: 'M9.5 2.5h4v4M13.5 2.5 9 7M6.5 13.5h-4v-4M2.5 13.5 7 9',
  smaller: 'M13 7H9V3M9 7l4.5-4.5M3 9h4v4M7 9l-4.5 4.5',
  opened: 'M3.5 6 8 10.5 12.5 6',
  closed: 'M6 3.5 10.5 8 6 12.5',
  departure: 'M8 2 1.5 13.5h13zM8 6.5v3.2M8 11.6v.1',
  link: 'M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.9.9M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.2 9.1a2.6 2.6 0 0 0 3.7 3.7l.9-.9',
  timer: 'M8 14A5.2 5.2 0 1 0 8 3.6 5.2 5.2 0 0 0 8 14zM8 6.2v2.6l1.7 1.2M6.4 1.6h3.2',
} as const;

export type IconName = keyof typeof paths;

/** Decorative: the meaning is in the adjacent text or label. */
export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
