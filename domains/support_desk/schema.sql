-- The whole state of the desk. Money is in cents, days are YYYY-MM-DD, a slot is YYYY-MM-DDTHH:MM.
create table customers (
    customer_id text primary key,
    email text not null unique,
    address text not null
);

create table orders (
    order_id text primary key,
    customer_id text not null references customers (customer_id),
    placed_on text not null,
    state text not null check (state in ('placed', 'packed', 'shipped', 'delivered', 'cancelled', 'refunded')),
    address text not null,
    total_cents integer not null check (total_cents > 0),
    due_cents integer not null check (due_cents between 0 and total_cents),
    returnable_until text,  -- null until the order is delivered
    closed_on text,         -- the day of a cancellation or refund
    closed_reason text
);

create table order_items (
    order_id text not null references orders (order_id),
    line integer not null,
    product text not null,
    quantity integer not null check (quantity > 0),
    unit_cents integer not null check (unit_cents > 0),
    primary key (order_id, line)
);

create table gift_cards (
    code text primary key,
    customer_id text not null references customers (customer_id),
    balance_cents integer not null check (balance_cents >= 0),
    issued_on text not null,
    reason text not null
);

create table slots (
    slot text primary key,
    places integer not null check (places > 0)
);

create table bookings (
    booking_id text primary key,
    customer_id text not null references customers (customer_id),
    service text not null,
    slot text not null references slots (slot)
);
