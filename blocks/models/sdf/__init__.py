"""SDF: plants from the files of Gazebo and Drake."""
