/** Messages between a test and its fake Envoys: one JSON object per line over a Unix socket. */

/** In the folder of the configuration file. */
export const controlSocketName = 'stand-in.sock';

/** First message of a fake Envoy. */
export interface Hello {
  readonly pid: number;
  readonly mode: 'serve' | 'validate';
  readonly epoch: number;
  readonly baseId: number;
  readonly args: readonly string[];
}

/** The response, with the initial behaviour. */
export interface Beginning {
  /** Default: immediately. `on order` may never happen. */
  readonly live?: 'at once' | 'on order';
  /** Exits immediately, as with an invalid configuration. */
  readonly exit?: { readonly code: number; readonly lastWords: string };
  readonly ignores?: readonly ('SIGTERM' | 'SIGINT')[];
  /** Whether it never opens its admin interface. */
  readonly noAdmin?: boolean;
}

/** Commands to a running fake Envoy. */
export type Order =
  | { readonly order: 'live' }
  | { readonly order: 'exit'; readonly code: number; readonly lastWords?: string }
  /** Sends itself a signal: SIGSEGV, SIGKILL like the OOM killer, … */
  | { readonly order: 'crash'; readonly signal: NodeJS.Signals }
  /** Text for stderr, unchanged: without `\n`, the line is incomplete. */
  | { readonly order: 'print'; readonly text: string }
  /** Number of lines on stderr, written as fast as they are read. */
  | { readonly order: 'flood'; readonly lines: number }
  /** The admin interface accepts connections without responding, responds with 500, or works. */
  | { readonly order: 'admin'; readonly behaviour: 'holds' | 'fails' | 'answers' }
  /** The admin interface responds to every request with these bytes (base64), HTTP or not. */
  | { readonly order: 'garble admin'; readonly bytes: string }
  /** Number of requests in flight in the statistics. */
  | { readonly order: 'requests'; readonly active: number }
  /** Sets the flag in shared memory that makes it reject every child (fact 1). */
  | { readonly order: 'refuse children' };

/** Messages after the hello. */
export type StandInReport =
  | { readonly report: 'live' | 'obeyed' }
  /** A signal was received, ignored or not. */
  | { readonly report: 'signal'; readonly signal: NodeJS.Signals }
  /** The admin interface accepted a command. */
  | { readonly report: 'admin'; readonly path: string };
