/** What cannot be read off the machine: its input, what its events carry, and how its effect may end. */
export const input = { maxSeats: 4 };

export const events = {
  'seats.chosen': [{ seats: 2 }, { seats: 5 }],
};

export const outcomes = {
  pay: [{ output: { receipt: 'r-1' } }, { error: 'card refused' }],
};
