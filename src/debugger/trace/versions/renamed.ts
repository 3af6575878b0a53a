/** Old name to new name. */
export type Renamed = Readonly<Record<string, string>>;

export interface RenamedInMachine {
  /** Segments of state paths: `waiting for a start` of `running.waiting for a start`. */
  readonly states?: Renamed;
  readonly tags?: Renamed;
  readonly guards?: Renamed;
  readonly actions?: Renamed;
  readonly delays?: Renamed;
}
