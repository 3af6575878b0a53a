/** A line as parsed from JSON; it is validated after its conversion to the current version. */
export type RawLine = Record<string, unknown>;
export type VersionStep = (line: RawLine) => RawLine;
