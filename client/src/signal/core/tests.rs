mod connection;
mod ending;
mod kit;
mod model;
mod staying;
