/** Fields that are used although no proxy is given anything else for them: why, and what reads them. */

export interface Unobserved {
  /** `Kind path`, as the test reports it. */
  readonly field: RegExp;
  readonly reason: string;
  /** A file, and the text by which it reads the field; absent: nothing is expected of the field. */
  readonly readBy?: readonly [file: string, text: string];
}

export const unobserved: readonly Unobserved[] = [
  { field: /^Gateway servers\[\]\.name$/, reason: 'names the server for people; names must be unique' },
  { field: /^Sidecar (ingress|egress)\[\]\.port\.name$/, reason: 'names the port for people' },
  {
    field: /^Sidecar ingress\[\]\.tls\.httpsRedirect$/,
    reason: 'true is refused, false is what happens anyway',
    readBy: ['src/model/kinds/sidecar.decode.ts', 'tls?.httpsRedirect === true'],
  },
];
