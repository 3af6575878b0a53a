/** Old name to new name. */
export type RenameMap = Readonly<Record<string, string>>;

export interface RenamedInMachine {
  /** Segments of state paths: `waiting for a start` of `running.waiting for a start`. */
  readonly states?: RenameMap;
  readonly tags?: RenameMap;
  readonly guards?: RenameMap;
  readonly actions?: RenameMap;
  readonly delays?: RenameMap;
}
