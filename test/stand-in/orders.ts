/** What a test and its stand-ins say to each other: one JSON object a line, over a Unix socket. */

/** In the folder of the configuration file. */
export const controlSocketName = 'stand-in.sock';

/** The first line of a stand-in. */
export interface Hello {
  readonly pid: number;
  readonly mode: 'serve' | 'validate';
  readonly epoch: number;
  readonly baseId: number;
  readonly args: readonly string[];
}

/** The answer: how it begins. */
export interface Beginning {
  /** Default: at once. `on order` is also never. */
  readonly live?: 'at once' | 'on order';
  /** Exits before it does anything, as over a bad configuration. */
  readonly exit?: { readonly code: number; readonly lastWords: string };
  /** Signals that it does not end by. */
  readonly ignores?: readonly ('SIGTERM' | 'SIGINT')[];
  /** Never opens its admin interface. */
  readonly noAdmin?: boolean;
}

/** What it does from then on. */
export type Order =
  | { readonly order: 'live' }
  | { readonly order: 'exit'; readonly code: number; readonly lastWords?: string }
  /** By its own hand: SIGSEGV, SIGKILL as the kernel would, … */
  | { readonly order: 'crash'; readonly signal: NodeJS.Signals }
  /** To stderr, as it is: without `\n` the line stays half said. */
  | { readonly order: 'print'; readonly text: string }
  /** As many lines on stderr, as fast as they are read. */
  | { readonly order: 'flood'; readonly lines: number }
  /** The admin interface takes connections and does not answer, answers everything with 500, or behaves. */
  | { readonly order: 'admin'; readonly behaviour: 'holds' | 'fails' | 'answers' }
  /** The admin interface answers everything with these bytes, in base64, HTTP or not. */
  | { readonly order: 'garble admin'; readonly bytes: string }
  /** Requests in flight, in its statistics. */
  | { readonly order: 'requests'; readonly active: number }
  /** Sets the mark in shared memory that makes it refuse every child (fact 1). */
  | { readonly order: 'refuse children' };

/** Told after the hello. */
export type Told =
  | { readonly told: 'live' | 'obeyed' }
  /** A signal came, whether it is ignored or not. */
  | { readonly told: 'signal'; readonly signal: NodeJS.Signals }
  /** The admin interface took an order. */
  | { readonly told: 'admin'; readonly path: string };
