/** A line as parsed from JSON; it is validated after the last step. */
export type RawLine = Record<string, unknown>;
export type VersionStep = (line: RawLine) => RawLine;
