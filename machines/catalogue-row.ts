/** An event with its sender, receiver, diagram, and the messages of the specification that it corresponds to. */
export interface CatalogueRow<Diagram extends string = string> {
  readonly type: string;
  /** System ID of an actor; `N` stands for its number. */
  readonly from: string;
  readonly to: string;
  /** A file in `sequences/`, without extension. */
  readonly diagram: Diagram;
  /** Rows in the tables of the specification, such as `6.8 #11`; empty if the specification does not have the message. */
  readonly seeds: readonly string[];
}
